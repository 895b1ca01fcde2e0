package xnet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/understudy-lb/understudy/internal/testing/testcert"
)

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:1": true, "127.8.9.1:1": true, "[::1]:1": true, "localhost:1": true,
		"10.0.0.1:1": false, "0.0.0.0:1": false, "[::]:1": false, "localhost.example.com:1": false, "": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("IsLoopback(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestRoots(t *testing.T) {
	if _, err := Roots(testcert.New(t).File()); err != nil {
		t.Error(err)
	}
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{empty: empty + " holds no certificate in PEM", empty + "2": "no such file"} {
		if _, err := Roots(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
