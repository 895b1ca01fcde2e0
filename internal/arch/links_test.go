package arch

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestLinksAreValid(t *testing.T) {
	for _, problem := range brokenLinks(t, os.DirFS("../..")) {
		t.Error(problem)
	}
}

func TestPagesAreTwoClicksAway(t *testing.T) {
	for _, page := range farPages(t, os.DirFS("../..")) {
		t.Errorf("%s is more than two clicks from README.md: add it to docs/README.md", page)
	}
}

// A page of more than twoScreens lines must begin with a table of contents.
func TestLongPagesHaveContents(t *testing.T) {
	for _, page := range longPages(t, os.DirFS("../..")) {
		t.Errorf("%s has more than %d lines: split it, or add links to its headings before the first or second of them", page, twoScreens)
	}
}

const twoScreens = 120

// longPages returns the pages that need a table of contents but have none.
func longPages(t *testing.T, repository fs.FS) (long []string) {
	t.Helper()
	for _, page := range documents(t, repository) {
		text := load(t, repository, page)
		if !slices.Contains([]string{"docs/howto", "docs/reference", "docs/explanation"}, path.Dir(page)) || strings.Count(text, "\n") <= twoScreens {
			continue
		}
		sections := strings.Split(strings.Join(proseOf(text), "\n"), "\n## ")
		beginning := strings.Join(sections[:min(2, len(sections))], "\n")
		if strings.Count(beginning, "](#") < 2 {
			long = append(long, page)
		}
	}
	return long
}

// farPages returns the pages in docs that are more than two clicks from README.md. A link to a
// directory counts as a link to each page in it.
func farPages(t *testing.T, repository fs.FS) (far []string) {
	t.Helper()
	all := documents(t, repository)
	reached := []string{"README.md"}
	for range 2 {
		for _, from := range reached {
			if !slices.Contains(all, from) {
				continue
			}
			for _, l := range linksOf(load(t, repository, from)) {
				to := path.Join(path.Dir(from), l.file)
				reached = append(reached, to)
				for _, page := range all {
					if path.Dir(page) == to {
						reached = append(reached, page)
					}
				}
			}
		}
	}
	for _, page := range all {
		if strings.HasPrefix(page, "docs/") && !slices.Contains(reached, page) {
			far = append(far, page)
		}
	}
	return far
}

func brokenLinks(t *testing.T, repository fs.FS) (broken []string) {
	t.Helper()
	for _, page := range documents(t, repository) {
		for _, l := range linksOf(load(t, repository, page)) {
			file := page
			if l.file != "" {
				file = path.Join(path.Dir(page), l.file)
			}
			if _, err := fs.Stat(repository, file); err != nil {
				broken = append(broken, fmt.Sprintf("%s:%d: the link %s leads nowhere", page, l.line, l.file))
			} else if l.anchor != "" && !slices.Contains(anchors(load(t, repository, file)), l.anchor) {
				broken = append(broken, fmt.Sprintf("%s:%d: %s has no heading %s", page, l.line, file, l.anchor))
			}
		}
	}
	return broken
}

func documents(t *testing.T, repository fs.FS) (all []string) {
	t.Helper()
	err := fs.WalkDir(repository, ".", func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(name, ".") && name != "." && name != ".github" || name == "node_modules" || name == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".md"):
			all = append(all, file)
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d documents: %v", len(all), err)
	}
	return all
}

func load(t *testing.T, repository fs.FS, file string) string {
	t.Helper()
	data, err := fs.ReadFile(repository, file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func proseOf(text string) []string {
	all := strings.Split(text, "\n")
	code := false
	for i, line := range all {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if code || fence {
			all[i] = ""
		}
		code = code != fence
	}
	return all
}

type link struct {
	line         int
	file, anchor string
}

var linkPattern = regexp.MustCompile(`\]\(([^)# ]*)(#[^) ]*)?[^)]*\)`)

func linksOf(text string) (all []link) {
	for i, line := range proseOf(text) {
		for _, match := range linkPattern.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			if !strings.Contains(match[1], ":") {
				all = append(all, link{line: i + 1, file: match[1], anchor: match[2]})
			}
		}
	}
	return all
}

var (
	codeSpan    = regexp.MustCompile("`[^`]*`")
	heading     = regexp.MustCompile(`^#+ (.*)$`)
	punctuation = regexp.MustCompile(`[^\pL\pN _-]`)
)

func anchors(text string) (all []string) {
	seen := make(map[string]int)
	for _, line := range proseOf(text) {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		anchor := "#" + strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-")
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor += "-" + strconv.Itoa(n)
		}
		all = append(all, anchor)
	}
	return all
}
