package file

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestEditTakesEffectWithinASecond(t *testing.T) {
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		write(t, path, onePort(1))
		channel := watchFile(t, path)
		channel.expect(t, 1)
		for port := 2; port < 7; port++ {
			start := time.Now()
			if port%2 == 0 {
				write(t, path, onePort(port))
			} else {
				replace(t, path, onePort(port))
			}
			channel.expect(t, port)
			if elapsed := time.Since(start); elapsed > time.Second {
				t.Errorf("the edit took %v", elapsed)
			}
		}
	})
}

// Kubernetes mounts a ConfigMap as endpoints.yaml -> ..data/endpoints.yaml, where ..data is a link
// to a directory such as ..2026_11_21. An update renames a new link to ..data and removes the old
// directory.
func TestConfigMapSwap(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	dir := filepath.Dir(path)
	swap := func(version string, port int) {
		mkdir(t, filepath.Join(dir, version))
		write(t, filepath.Join(dir, version, "endpoints.yaml"), onePort(port))
		symlink(t, version, filepath.Join(dir, "..data_tmp"))
		rename(t, filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
	}
	swap("..v1", 1)
	symlink(t, "..data/endpoints.yaml", path)
	channel := watchFile(t, path)
	channel.expect(t, 1)
	for port, version := range []string{2: "..v2", 3: "..v3"} {
		if version == "" {
			continue
		}
		before, _ := os.Readlink(filepath.Join(dir, "..data"))
		swap(version, port)
		if err := os.RemoveAll(filepath.Join(dir, before)); err != nil {
			t.Fatal(err)
		}
		channel.expect(t, port)
	}
}

func TestLinkToOtherDirectory(t *testing.T) {
	t.Parallel()
	path, other := newPath(t), newPath(t)
	write(t, other, onePort(1))
	symlink(t, other, path)
	channel := watchFile(t, path)
	channel.expect(t, 1)
	write(t, other, onePort(2))
	channel.expect(t, 2)
	replace(t, other, onePort(3))
	channel.expect(t, 3)
}

func TestFileCreatedLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "later", "endpoints.yaml")
	channel := watchFile(t, path)
	if got, want := channel.nextError(t), "file: "+path+": no such file or directory"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
	mkdir(t, filepath.Dir(path))
	write(t, path, onePort(1))
	channel.expect(t, 1)
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	logged.Wait(t, testTimeout, path+": no such file or directory; the previous endpoints stay in use")
	mkdir(t, filepath.Dir(path))
	write(t, path, onePort(2))
	channel.expect(t, 2)
}

func TestDirectoryMovedAndRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "endpoints.yaml")
	dir := filepath.Dir(path)
	synctest.Test(t, func(t *testing.T) {
		mkdir(t, dir)
		write(t, path, onePort(1))
		channel := watchFile(t, path)
		channel.expect(t, 1)
		for port := 2; port < 20; port++ {
			rename(t, dir, dir+".old")
			if err := os.RemoveAll(dir + ".old"); err != nil {
				t.Fatal(err)
			}
			mkdir(t, dir)
			write(t, path, onePort(port))
			channel.expect(t, port)
		}
	})
}

func TestInvalidEditIsLoggedOnce(t *testing.T) {
	path := newPath(t)
	write(t, path, onePort(1))
	channel := watchFile(t, path)
	channel.expect(t, 1)

	replace(t, path, "endpoints: [")
	logged.Wait(t, testTimeout, path+":2:1: syntax error")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	replace(t, path, onePort(1)+"  priority: 1\n")
	logged.Wait(t, testTimeout, path+":4:13: priority 1 is used, but priority 0 has no locality that gets traffic; the previous endpoints stay in use")
	replace(t, path, onePort(1))
	replace(t, path, onePort(2))
	channel.expect(t, 2)
	if n := logged.Count(path + ":2:1: syntax error"); n != 1 {
		t.Errorf("the syntax error was logged %d times, want once", n)
	}
	if len(channel.errors) != 0 {
		t.Errorf("the channel received the error %v although it had endpoints", <-channel.errors)
	}
}

func TestUnchangedContentIsNotSent(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	write(t, path, onePort(1))
	channel := watchFile(t, path)
	channel.expect(t, 1)
	replace(t, path, onePort(1))
	write(t, path, onePort(1))
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	replace(t, path, onePort(2))
	channel.expect(t, 2)
}
