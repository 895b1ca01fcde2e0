package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Getenv("UNDERSTUDY_TEST_AS_BINARY") != "" || os.Args[1] == "demo-backend") {
		main()
		return
	}
	testscript.Main(m, map[string]func(){"understudy": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}
