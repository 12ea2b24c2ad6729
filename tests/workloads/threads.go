// SPDX-License-Identifier: Apache-2.0

// Eight goroutines write a file each and read one together. A static program without libc.
package main

import (
	"fmt"
	"os"
	"sync"
)

func main() {
	if os.WriteFile("f", make([]byte, 8*10007), 0o644) != nil {
		os.Exit(1)
	}
	f, err := os.Open("f")
	if err != nil {
		os.Exit(1)
	}
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func(n int64) {
			defer group.Done()
			part := make([]byte, 10007)
			if _, err := f.ReadAt(part, n*10007); err != nil {
				os.Exit(1)
			}
			if os.WriteFile(fmt.Sprintf("t%d", n), part, 0o644) != nil {
				os.Exit(1)
			}
		}(int64(i))
	}
	group.Wait()
}
