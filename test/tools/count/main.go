// Command count prints the number of lines of Go code in each package directory of all modules,
// without comments and tests. Benchmarks and test support (internal/testing) are counted
// separately.
//
//	go run ./count [DIRECTORY...]     from the directory tools; counts only the given directories
package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	packages, err := count("../..")
	if err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
	product, benches, tests := 0, 0, 0
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		if !selected(dir, os.Args[1:]) {
			continue
		}
		fmt.Printf("%6d  %s\n", packages[dir], dir)
		switch {
		case strings.Contains(dir+"/", "internal/testing/"):
			tests += packages[dir]
		case strings.HasPrefix(dir, "test/bench/"):
			benches += packages[dir]
		default:
			product += packages[dir]
		}
	}
	fmt.Printf("%6d  product\n%6d  benches, outside the release\n%6d  support of tests\n", product, benches, tests)
}

func selected(dir string, directories []string) bool {
	return len(directories) == 0 || slices.ContainsFunc(directories, func(g string) bool { return dir == g || strings.HasPrefix(dir, g+"/") })
}

func count(root string) (map[string]int, error) {
	packages := make(map[string]int)
	return packages, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		code, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		packages[filepath.ToSlash(dir)] += lines(code)
		return err
	})
}

func lines(code []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(code))
	var s scanner.Scanner
	s.Init(file, code, nil, 0)
	seen := make(map[int]bool)
	for {
		pos, t, text := s.Scan()
		if t == token.EOF {
			return len(seen)
		}
		if t == token.SEMICOLON && text == "\n" {
			continue
		}
		from := file.Line(pos)
		for line := from; line <= from+strings.Count(text, "\n"); line++ {
			seen[line] = true
		}
	}
}
