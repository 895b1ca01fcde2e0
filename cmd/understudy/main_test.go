package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Getenv("UNDERSTUDY_TEST_AS_BINARY") != "" {
		main()
		return
	}
	flag.Set("test.parallel", "8")
	testscript.Main(m, map[string]func(){"understudy": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}

func TestInterruptedExplainReturnsFailure(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endpoints.yaml")
	if err := os.WriteFile(path, []byte("endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: /a}}}}]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	command := newCommand()
	command.SetArgs([]string{"explain", path})
	command.SetOut(io.Discard)
	err := command.ExecuteContext(ctx)
	var f failure
	if !errors.As(err, &f) || !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v (%T), want the interrupt, as a failure", err, err)
	}
}
