#!/bin/sh
# The demo workflow as a plain shell script: a year of temperatures at 8 stations.
# Needs only coreutils and Python. Every run makes the same bytes.
set -e
stations="0 1 2 3 4 5 6 7"
seasons="winter spring summer autumn"
samples=131072

python3 simulate.py records.bin 8 $samples
python3 calibration.py calibration.tbl 65536
for s in $stations; do
    python3 calibrate.py records.bin calibration.tbl $s $samples calibrated_$s.bin &
done
wait
for s in $stations; do
    python3 smooth.py calibrated_$s.bin $s field.bin daily_$s.csv &
done
wait
python3 summarize.py summary.csv daily_0.csv daily_1.csv daily_2.csv daily_3.csv \
    daily_4.csv daily_5.csv daily_6.csv daily_7.csv
python3 split.py field.bin 8 winter.bin spring.bin summer.bin autumn.bin
for q in $seasons; do
    python3 extremes.py $q.bin extremes_$q.txt &
done
wait
sort -k2 -n extremes_winter.txt extremes_spring.txt extremes_summer.txt extremes_autumn.txt \
    -o extremes.txt
