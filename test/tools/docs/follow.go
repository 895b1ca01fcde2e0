package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const blockTimeout = 10 * time.Minute

type result struct {
	page    *page
	ran     int
	skipped []string
	took    time.Duration
	err     error
}

func (w *environment) follow(ctx context.Context, p *page) result {
	began := time.Now()
	f := follower{world: w, page: p, result: result{page: p}}
	f.result.err = f.run(ctx)
	f.result.took = time.Since(began)
	return f.result
}

type follower struct {
	world   *environment
	page    *page
	dir     string
	session *session
	result  result
}

func (f *follower) run(ctx context.Context) error {
	if err := f.awaitPorts(ctx); err != nil {
		return err
	}
	pageDir := filepath.Join(f.world.dir, strings.NewReplacer("/", "-", ".", "-").Replace(f.page.name))
	f.dir = filepath.Join(pageDir, "scratch")
	home, temp := filepath.Join(pageDir, "home"), filepath.Join(pageDir, "tmp")
	for _, dir := range []string{f.dir, home, temp} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	session, err := start(f.dir, filepath.Join(pageDir, "blocks"), append(slices.Clip(f.world.env), "HOME="+home, "TMPDIR="+temp))
	if err != nil {
		return err
	}
	defer session.close()
	f.session = session
	for i, b := range f.page.blocks {
		ctx, cancel := context.WithTimeout(ctx, blockTimeout)
		err := f.block(ctx, b, filepath.Join(pageDir, fmt.Sprintf("program%d", i)))
		cancel()
		if err != nil {
			return fmt.Errorf("%d: %w", b.line, err)
		}
	}
	return f.compile(ctx)
}

var port = regexp.MustCompile(`\b50(?:0[5-9]|1[0-9])\d\b`)

// portWait is how long we wait for another program to release a port of the page. The system may
// also use these ports for outgoing connections, and then blocks them for a minute after the
// connection has ended.
const portWait = 90 * time.Second

func (f *follower) awaitPorts(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, portWait)
	defer cancel()
	for _, b := range f.page.blocks {
		for _, number := range port.FindAllString(b.content, -1) {
			if err := awaitPort(ctx, number); err != nil {
				return fmt.Errorf("%d: port %s is in use, perhaps by another run of the pages: %w", b.line, number, err)
			}
		}
	}
	return nil
}

func awaitPort(ctx context.Context, number string) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:"+number)
		if err == nil {
			return listener.Close()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (f *follower) block(ctx context.Context, b block, program string) error {
	switch {
	case b.norun:
		if b.language == "sh" {
			f.result.skipped = append(f.result.skipped, fmt.Sprintf("%d: %s", b.line, b.reason))
		}
		return nil
	case b.language == "go":
		if err := checkGo(b); err != nil {
			return err
		}
	case b.language == "yaml", b.language == "json":
		if err := f.checkYAML(ctx, b); err != nil {
			return err
		}
	}
	f.result.ran++
	switch {
	case b.file != "":
		return f.write(filepath.Join(f.dir, b.file), b.content)
	case b.language == "sh":
		return f.commands(ctx, b)
	case b.language == "go" && !b.fragment:
		return f.compileProgram(ctx, b.content, program)
	}
	return nil
}

func (f *follower) write(file, content string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o644)
}

func (f *follower) commands(ctx context.Context, b block) error {
	output, err := f.session.run(ctx, b.content)
	got := lines(output)
	var want []string
	if b.want != nil {
		want = lines(b.want.content)
	}
	switch {
	case err != nil && b.want == nil:
		return fmt.Errorf("%w\n%s%s", err, indented(lines(b.content)), indented(got))
	case err != nil:
		return fmt.Errorf("%w\n%s%s", err, indented(lines(b.content)), diff(want, got))
	case b.want != nil && !matches(want, got):
		return fmt.Errorf("the output is not the one at line %d\n%s%s", b.want.line, indented(lines(b.content)), diff(want, got))
	}
	return nil
}

func indented(lines []string) string {
	var text strings.Builder
	for _, line := range lines {
		text.WriteString("    " + line + "\n")
	}
	return text.String() + "    ----\n"
}
