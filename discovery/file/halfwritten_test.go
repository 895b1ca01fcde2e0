package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// blockStyle returns the content of a file with one endpoint for each port, in YAML's block style.
// Such content is valid even if it ends in the middle of a port number.
func blockStyle(ports ...string) string {
	text := "endpoints:\n- lb_endpoints:\n"
	for _, port := range ports {
		text += "  - endpoint:\n      address:\n        socket_address:\n          address: 192.0.2.1\n          port_value: " + port + "\n"
	}
	return text
}

func writeSlowly(t *testing.T, path string, pause time.Duration, pieces ...string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range pieces {
		if _, err := f.WriteString(piece); err != nil {
			t.Fatal(err)
		}
		time.Sleep(pause)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file that is written slowly in place must be used only when it is complete. Before that, it may
// contain the port 844 instead of 8443, or only half of the endpoints.
func TestSlowWrite(t *testing.T) {
	content := blockStyle("8443", "8444", "8445", "8446")
	for name, test := range map[string]struct {
		pause  time.Duration
		pieces []string
	}{
		"in the middle of a number": {1500 * time.Millisecond, []string{content[:strings.Index(content, "3\n")], content[strings.Index(content, "3\n"):]}},
		"between endpoints":         {1500 * time.Millisecond, []string{content[:len(content)/2], content[len(content)/2:]}},
		"line by line":              {400 * time.Millisecond, strings.SplitAfter(content, "\n")},
		"byte by byte":              {20 * time.Millisecond, strings.Split(content, "")},
	} {
		t.Run(name, func(t *testing.T) {
			path, initial := newPath(t), blockStyle("1", "2", "3", "4")
			synctest.Test(t, func(t *testing.T) {
				write(t, path, initial)
				c := watchFile(t, path)
				sleep(3 * time.Second)
				if len(c.states) != 1 {
					t.Fatalf("%d states for the first content", len(c.states))
				}
				<-c.states
				writeSlowly(t, path, test.pause, test.pieces...)
				sleep(3 * time.Second)
				const want = `192.0.2.1:8443["child0" "/"] 192.0.2.1:8444["child0" "/"] 192.0.2.1:8445["child0" "/"] 192.0.2.1:8446["child0" "/"]`
				if got := c.next(t); got != want || len(c.states) > 0 {
					t.Errorf("state = %s, and %d more; want %s alone", got, len(c.states), want)
				}
			})
			if n := logged.Count("file: " + path); n != 0 {
				t.Errorf("%d complaints were logged, want none", n)
			}
		})
	}
}

func TestSlowWriteOfNewFile(t *testing.T) {
	path, content := newPath(t), blockStyle("8443")
	synctest.Test(t, func(t *testing.T) {
		c := watchFile(t, path)
		sleep(time.Second)
		<-c.errors
		writeSlowly(t, path, 1500*time.Millisecond, content[:len(content)-2], "3\n")
		sleep(3 * time.Second)
		c.expect(t, 8443)
		if len(c.states)+len(c.errors) > 0 {
			t.Errorf("%d states and %d errors more, want none", len(c.states), len(c.errors))
		}
	})
}

func TestConstantlyChangingFile(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		write(t, path, onePort(1))
		c := watchFile(t, path)
		for i := range 200 {
			modTime := time.Now().Add(time.Duration(i) * time.Second)
			if err := os.Chtimes(path, modTime, modTime); err != nil {
				t.Fatal(err)
			}
			sleep(100 * time.Millisecond)
		}
		if got, want := c.nextError(t), "file: "+path+": has been changing for 10s: want the changes to stop, or a replacement by rename"; got != want || len(c.errors) > 0 {
			t.Errorf("error = %s, and %d more, want %s", got, len(c.errors), want)
		}
		sleep(3 * time.Second)
		c.expect(t, 1)
	})
}

// A directory is replaced while the file in it is half-written, by one in which the file is
// half-written, too. Neither half must be used, nor the complete file in the old directory.
func TestDirectoryReplacedDuringWrite(t *testing.T) {
	path := newPath(t)
	dir := filepath.Join(filepath.Dir(path), "dir")
	path = filepath.Join(dir, "endpoints.yaml")
	mkdir(t, dir)
	mkdir(t, dir+".new")
	begin := func(path, half string) *os.File {
		f, err := os.Create(path)
		if err == nil {
			_, err = f.WriteString(half)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	finish := func(f *os.File, rest string) {
		if _, err := f.WriteString(rest); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	synctest.Test(t, func(t *testing.T) {
		write(t, path, onePort(1))
		c := watchFile(t, path)
		c.expect(t, 1)
		sleep(3 * time.Second)
		const half = 40
		old := begin(path, blockStyle("8443")[:half])
		replacement := begin(filepath.Join(dir+".new", "endpoints.yaml"), blockStyle("8444")[:half])
		rename(t, dir, dir+".old")
		rename(t, dir+".new", dir)
		sleep(300 * time.Millisecond)
		finish(old, blockStyle("8443")[half:])
		sleep(1200 * time.Millisecond)
		finish(replacement, blockStyle("8444")[half:])
		c.expect(t, 8444)
		if sleep(3 * time.Second); len(c.states) > 0 {
			t.Errorf("%d states more, want none", len(c.states))
		}
	})
	if n := logged.Count("file: " + path); n != 0 {
		t.Errorf("%d complaints were logged, want none", n)
	}
}
