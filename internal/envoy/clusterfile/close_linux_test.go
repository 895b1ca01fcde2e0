package clusterfile

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestLoadClosesFile(t *testing.T) {
	path := writeFile(t, small)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a garbage collection would close the file
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	before := open()
	for range 20 {
		if _, err := Load(path); err != nil {
			t.Fatal(err)
		}
	}
	if after := open(); after >= before+20 {
		t.Errorf("%d files are open, and %d before", after, before)
	}
}
