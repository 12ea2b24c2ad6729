#!/bin/sh
# Fetch the workflow engines that the tests run and that need separate directories:
#   scripts/engines.sh FOLDER [ENGINE]
# FOLDER/bin/nextflow      (Maven artifacts; runs without a network afterwards)
# FOLDER/bin/{cwltool,python}  (a virtual environment with cwltool, Parsl, Dask and the Python API of
#                          Pegasus: they pin versions unlike the development environment's)
# FOLDER/bin/hdfs          (only if ENGINE is `bin/hdfs`: Maven artifacts of HDFS, a store)
# FOLDER/snakemake-VERSION/bin/snakemake   (only if ENGINE names it so: a virtual environment)
# pip and Maven run with the machine's own configuration.
# Existing engines are kept; those without their program are fetched again.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd -P) # programs in it contain their own path

case ${2-} in
snakemake-*)
    place=$folder/${2%%/*}
    if [ ! -e "$place/.ready" ]; then
        "$("$here/python.sh")" -m venv "$place"
        # 8.0 uses an interface of pulp that its version 2.8 removed
        # and executors that submit jobs: emitted profiles must start with them, too
        "$place/bin/pip" install -q --disable-pip-version-check \
            "snakemake==${place##*/snakemake-}" 'pulp<2.8' \
            snakemake-executor-plugin-cluster-generic snakemake-executor-plugin-slurm
        touch "$place/.ready"
    fi
    exit 0
    ;;
bin/hdfs) # a store: Maven artifacts, and a program that starts its Java classes
    if [ ! -e "$folder/.ready-hdfs-2" ] || [ ! -x "$folder/bin/hdfs" ]; then
        mkdir -p "$folder/bin" "$folder/hdfs-pom"
        {
            echo '<project xmlns="http://maven.apache.org/POM/4.0.0">'
            echo '<modelVersion>4.0.0</modelVersion><groupId>tracehint</groupId>'
            echo '<artifactId>hdfs-for-tests</artifactId><version>1</version>'
            echo '<packaging>pom</packaging><dependencies>'
            for part in hadoop-hdfs hadoop-hdfs-client hadoop-common; do
                echo "<dependency><groupId>org.apache.hadoop</groupId><artifactId>$part</artifactId>"
                echo '<version>3.3.6</version></dependency>'
            done
            echo '</dependencies></project>'
        } >"$folder/hdfs-pom/pom.xml"
        mvn -q -B -f "$folder/hdfs-pom/pom.xml" dependency:copy-dependencies \
            -DoutputDirectory="$folder/hdfs"
        # the class path needs these, empty
        mkdir -p "$folder/hdfs-empty/webapps/hdfs" "$folder/hdfs-empty/webapps/datanode"
        cat >"$folder/bin/hdfs" <<'END'
#!/bin/sh
folder=$(dirname "$(dirname "$(readlink -f "$0")")")
case $1 in
dfs) class=fs.FsShell ;;
fsck) class=hdfs.tools.DFSck ;;
storagepolicies) class=hdfs.tools.StoragePolicyAdmin ;;
namenode) class=hdfs.server.namenode.NameNode ;;
datanode) class=hdfs.server.datanode.DataNode ;;
*)
    echo "unknown: $1" >&2
    exit 2
    ;;
esac
shift
# without the property JAXB, which its REST interface uses, fails on Java 16 and later
exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xmx192m \
    -Dcom.sun.xml.bind.v2.bytecode.ClassTailor.noOptimize=true \
    -cp "$HADOOP_CONF_DIR:$folder/hdfs-empty:$folder/hdfs/*" "org.apache.hadoop.$class" "$@"
END
        chmod +x "$folder/bin/hdfs"
        touch "$folder/.ready-hdfs-2"
    fi
    exit 0
    ;;
esac

if [ ! -e "$folder/.ready-python-2" ] || [ ! -x "$folder/bin/cwltool" ]; then
    rm -rf "$folder/lib" && "$("$here/python.sh")" -m venv "$folder"
    "$folder/bin/pip" install -q --disable-pip-version-check \
        'cwltool>=3.1' 'parsl>=2024.1' 'distributed>=2024.1' 'pegasus-wms.api>=5.0.8'
    touch "$folder/.ready-python-2"
fi

if [ ! -e "$folder/.ready-nextflow" ] || [ ! -x "$folder/bin/nextflow" ]; then
    cat >"$folder/pom.xml" <<'END'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tracehint</groupId>
  <artifactId>nextflow-for-tests</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>io.nextflow</groupId>
      <artifactId>nextflow</artifactId>
      <version>24.10.0</version>
    </dependency>
  </dependencies>
</project>
END
    mvn -q -B -f "$folder/pom.xml" dependency:copy-dependencies -DoutputDirectory="$folder/nextflow"
    # the distribution's shell script downloads artifacts that exist here; this one does not
    cat >"$folder/bin/nextflow" <<'END'
#!/bin/sh
folder=$(dirname "$(dirname "$(readlink -f "$0")")")
NXF_OFFLINE=true NXF_HOME=${NXF_HOME:-$folder/nextflow-home} \
    exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$folder/nextflow/*" \
    nextflow.cli.Launcher "$@"
END
    chmod +x "$folder/bin/nextflow"
    touch "$folder/.ready-nextflow"
fi
