package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/understudy-lb/understudy/test/tools/modproxy"
)

func checkGo(b block) error {
	if !b.fragment {
		if _, err := parser.ParseFile(token.NewFileSet(), b.file, b.content, parser.SkipObjectResolution); err != nil {
			return fmt.Errorf("not a Go file, write ```go fragment if it is a part of one: %w", err)
		}
	}
	formatted, err := format.Source([]byte(b.content))
	if err != nil {
		return err
	}
	if !bytes.Equal(formatted, []byte(b.content)) {
		return fmt.Errorf("gofmt would change it\n%s", diff(lines(string(formatted)), lines(b.content)))
	}
	return nil
}

func (f *follower) compileProgram(ctx context.Context, content, dir string) error {
	if err := f.write(filepath.Join(dir, "main.go"), content); err != nil {
		return err
	}
	return f.compileModule(ctx, dir)
}

func (f *follower) compileModule(ctx context.Context, dir string) error {
	for _, command := range []string{"go mod init example.com/program", "go get " + modproxy.Root + "@" + version, "go mod tidy", "go vet ."} {
		if _, err := f.world.run(ctx, dir, strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

// compile creates a module for Go files that the page writes if the page itself doesn't.
func (f *follower) compile(ctx context.Context) error {
	seen := make(map[string]bool)
	for _, b := range f.page.blocks {
		dir := filepath.Join(f.dir, filepath.Dir(b.file))
		if b.language != "go" || b.file == "" || b.norun || seen[dir] {
			continue
		}
		seen[dir] = true
		if err := f.compileDirectory(ctx, dir); err != nil {
			return fmt.Errorf("%d: %s, at the end of the page: %w", b.line, b.file, err)
		}
	}
	return nil
}

func (f *follower) compileDirectory(ctx context.Context, dir string) error {
	goMod, err := f.world.run(ctx, dir, "go", "env", "GOMOD")
	switch {
	case err != nil:
		return err
	case strings.TrimSpace(goMod) == os.DevNull:
		return f.compileModule(ctx, dir)
	}
	_, err = f.world.run(ctx, dir, "go", "vet", ".")
	return err
}

// checkYAML checks a block of YAML that may be a file of endpoints. If no command on the page reads
// it, understudy explain must accept it.
func (f *follower) checkYAML(ctx context.Context, b block) error {
	endpoints := false
	for decoder := yaml.NewDecoder(strings.NewReader(b.content)); ; {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		fields, _ := document.(map[string]any)
		endpoints = fields["kind"] == nil && (fields["endpoints"] != nil || fields["clusters"] != nil)
	}
	if !endpoints || b.file == "" || f.isReadByCommand(filepath.Base(b.file)) {
		return nil
	}
	if err := f.write(filepath.Join(f.dir, b.file), b.content); err != nil {
		return err
	}
	_, err := f.world.run(ctx, f.dir, "understudy", "explain", b.file)
	return err
}

func (f *follower) isReadByCommand(file string) bool {
	for _, b := range f.page.blocks {
		if b.language == "sh" && !b.norun && strings.Contains(b.content, file) {
			return true
		}
	}
	return false
}
