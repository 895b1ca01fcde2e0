package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

type page struct {
	name   string
	slow   bool
	blocks []block
}

type block struct {
	line     int
	language string
	content  string
	file     string
	fragment bool // Go statements or declarations rather than a file
	norun    bool
	reason   string
	want     *block
}

const slowMark = "<!-- docs: slow -->"

func readPage(repository, name string) (*page, error) {
	p := &page{name: name}
	text, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		return p, err
	}
	p.slow = strings.HasPrefix(string(text), slowMark)
	blocks, err := parse(string(text))
	if err != nil {
		return p, err
	}
	p.blocks, err = attach(blocks)
	return p, err
}

var fence = regexp.MustCompile("^( *)(```+)(.*)$")

func parse(text string) (blocks []block, err error) {
	var open *block
	var indent, ticks string
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		match := fence.FindStringSubmatch(line)
		switch {
		case open == nil && match != nil:
			indent, ticks = match[1], match[2]
			blocks = append(blocks, block{line: number})
			open = &blocks[len(blocks)-1]
			if err := open.parseInfo(match[3]); err != nil {
				return nil, fmt.Errorf("%d: %w", number, err)
			}
		case open == nil:
		case match != nil && len(match[2]) >= len(ticks) && strings.TrimSpace(match[3]) == "":
			open = nil
		default:
			open.content += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%d: the code block has no end", open.line)
	}
	return blocks, nil
}

var attribute = regexp.MustCompile(`^\s+([a-z]+)(?:=(?:"([^"]*)"|([^\s"]+)))?`)

func (b *block) parseInfo(info string) error {
	b.language = strings.TrimSpace(info)
	if i := strings.IndexAny(b.language, " \t"); i >= 0 {
		info, b.language = b.language[i:], b.language[:i]
	} else {
		info = ""
	}
	for strings.TrimSpace(info) != "" {
		match := attribute.FindStringSubmatch(info)
		if match == nil {
			return fmt.Errorf("cannot parse the attributes %q", info)
		}
		info = info[len(match[0]):]
		value := match[2] + match[3]
		switch match[1] {
		case "file":
			if !filepath.IsLocal(value) {
				return fmt.Errorf("file=%s is not a file below the scratch directory", value)
			}
			b.file = value
		case "fragment":
			b.fragment = true
		case "norun":
			b.norun, b.reason = true, value
		default:
			return fmt.Errorf("unknown attribute %q, want file, fragment or norun", match[1])
		}
	}
	return b.check()
}

// check returns an error for any block that we would otherwise silently ignore.
func (b *block) check() error {
	switch {
	case b.language == "":
		return errors.New("the code block has no language: write sh, go, yaml, text or another")
	case slices.Contains([]string{"bash", "shell", "console", "golang", "yml"}, b.language):
		return fmt.Errorf("language %q is not followed: write sh, go or yaml", b.language)
	case b.language == "sh" && b.norun && b.reason == "":
		return errors.New("norun needs a reason: norun=\"needs a cluster\"")
	case b.language == "sh" && b.file != "" && b.norun, b.fragment && b.language != "go", b.fragment && b.file != "":
		return errors.New("these attributes contradict each other or the language")
	}
	return nil
}

func attach(blocks []block) (attached []block, err error) {
	for _, b := range blocks {
		last := len(attached) - 1
		switch {
		case b.language != "text" || b.file != "":
			attached = append(attached, b)
		case b.norun:
		case last < 0 || attached[last].language != "sh" || attached[last].file != "" || attached[last].want != nil:
			return nil, fmt.Errorf("%d: the text block follows no command: it is either the output of the sh block before it, or text norun", b.line)
		case !attached[last].norun:
			attached[last].want = &b
		}
	}
	return attached, nil
}
