// Command docs tests the pages of the documentation. It writes their files and runs their commands
// in a scratch directory, and compares the output with what the page says. CONTRIBUTING.md
// describes how pages mark their code blocks.
//
//	go run ./docs [-slow] [PAGE...]     from the directory tools; without PAGE, it tests all pages
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const maxParallel = 2

var patterns = []string{"README.md", "docs/README.md", "docs/howto/*.md", "docs/reference/*.md", "docs/explanation/*.md"}

const generated = "docs/reference/commands.md"

func main() {
	slow := flag.Bool("slow", false, "also follow the pages that are marked as slow")
	keep := flag.Bool("keep", false, "keep the scratch directories, and print where they are")
	repository := flag.String("repository", "../..", "directory of the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, *repository, flag.Args(), *slow, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, repository string, names []string, slow, keep bool) (err error) {
	began := time.Now()
	results, skipped, err := selectPages(repository, names, slow)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "understudy-docs-")
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // pwd prints the path without symbolic links
		return err
	}
	if keep {
		fmt.Println("the scratch directories are below", dir)
	} else {
		defer func() {
			if removeErr := os.RemoveAll(dir); err == nil {
				err = removeErr
			}
		}()
	}
	w, err := newEnvironment(ctx, repository, dir)
	if err != nil {
		return err
	}
	fmt.Printf("the modules and the command at %s: %.1f s\n", version, time.Since(began).Seconds())
	w.followAll(ctx, results)
	printTable(results, skipped, time.Since(began))
	for _, r := range results {
		if r.err != nil {
			return fmt.Errorf("%d of %d pages failed", failed(results), len(results))
		}
	}
	return ctx.Err()
}

func selectPages(repository string, names []string, slow bool) (pages []result, later []string, err error) {
	all := len(names) == 0
	if all {
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(pattern)))
			if err != nil {
				return nil, nil, err
			}
			for _, file := range files {
				if name, _ := filepath.Rel(repository, file); filepath.ToSlash(name) != generated {
					names = append(names, filepath.ToSlash(name))
				}
			}
		}
	}
	for _, name := range names {
		p, err := readPage(repository, name)
		if all && p.slow && !slow {
			later = append(later, name)
		} else {
			pages = append(pages, result{page: p, err: err})
		}
	}
	return pages, later, nil
}

func (w *environment) followAll(ctx context.Context, results []result) {
	slots := make(chan bool, maxParallel)
	var all sync.WaitGroup
	for i, r := range results {
		if r.err != nil {
			continue
		}
		slots <- true
		all.Go(func() {
			defer func() { <-slots }()
			results[i] = w.follow(ctx, r.page)
		})
	}
	all.Wait()
}

func failed(results []result) (n int) {
	for _, r := range results {
		if r.err != nil {
			n++
		}
	}
	return n
}

func printTable(results []result, later []string, took time.Duration) {
	width := 0
	for _, r := range results {
		width = max(width, len(r.page.name))
	}
	for _, name := range later {
		width = max(width, len(name))
	}
	for _, r := range results {
		state := "ok"
		if r.err != nil {
			state = "FAILED"
		}
		fmt.Printf("%-*s  %5.1f s  %2d blocks  %s\n", width, r.page.name, r.took.Seconds(), r.ran, state)
	}
	for _, name := range later {
		fmt.Printf("%-*s  NOT RUN: slow, see make docs\n", width, name)
	}
	for _, r := range results {
		for _, reason := range r.skipped {
			fmt.Printf("%s:%s (not run)\n", r.page.name, reason)
		}
	}
	fmt.Printf("all: %.1f s\n", took.Seconds())
	for _, r := range results {
		if r.err != nil {
			fmt.Printf("\n%s:%v\n", r.page.name, r.err)
		}
	}
}
