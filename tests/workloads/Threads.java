// SPDX-License-Identifier: Apache-2.0
// Eight threads each copy a part of one file to their own file. Run: java Threads.java
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;

class Threads {
    public static void main(String[] args) throws Exception {
        Files.write(Path.of("f"), new byte[8 * 10007]);
        Thread[] threads = new Thread[8];
        for (int i = 0; i < 8; i++) {
            int n = i;
            threads[i] = new Thread(() -> {
                try (RandomAccessFile f = new RandomAccessFile("f", "r")) {
                    byte[] part = new byte[10007];
                    f.seek(n * 10007L);
                    f.readFully(part);
                    Files.write(Path.of("t" + n), part);
                } catch (Exception e) {
                    throw new RuntimeException(e);
                }
            });
            threads[i].start();
        }
        for (Thread t : threads)
            t.join();
    }
}
