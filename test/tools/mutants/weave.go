package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A build takes much longer than most tests, so a woven program contains many mutants. For each, it
// has a changed copy of the function. The original function calls this copy if the environment
// variable MUTANT is the number of the mutant:
//
//	func (c *Child) State() State { return c.state }
//
//	func (c *Child) State() State { switch mutant { case 7: return c.State_7() }; return c.state }
//	func (c *Child) State_7() State { return c.state + 1 }

// We add a file with this source, which reads the number of the mutant.
const chooser = `package %s

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("MUTANT"))
`

// All mutants that compile are in the program; the others are marked as uncompiled. Those outside
// functions cannot be woven.
func weave(dir, scratch string, mutants []*mutant) (*program, error) {
	for {
		p := &program{scratch: scratch, replace: map[string]string{}}
		copies := map[string][]*mutant{} // by file, the mutant to which each line belongs
		byFile := map[string][]*mutant{}
		for i, m := range mutants {
			m.number = i + 1
			if m.function != nil && !m.uncompiled {
				byFile[m.file] = append(byFile[m.file], m)
			}
		}
		for file, mutants := range byFile {
			code := weaveFile(mutants, copies)
			if err := p.put(file, code); err != nil {
				return nil, err
			}
			if err := p.put(filepath.Join(dir, "zz_mutant.go"), fmt.Appendf(nil, chooser, mutants[0].pkg)); err != nil {
				return nil, err
			}
		}
		out, err := p.run(dir, "build", "-gcflags=-e", ".")
		if err == nil {
			return p, nil
		}
		if !markUncompiled(out, copies) {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
}

var compileError = regexp.MustCompile(`(?m)([^/\s]+\.go):(\d+):\d+: `)

func markUncompiled(out string, copies map[string][]*mutant) (found bool) {
	for _, match := range compileError.FindAllStringSubmatch(out, -1) {
		line, err := strconv.Atoi(match[2])
		if lines := copies[match[1]]; err == nil && line < len(lines) && lines[line] != nil {
			lines[line].uncompiled, found = true, true
		}
	}
	return found
}

// copies gets to which mutant each line belongs.
func weaveFile(mutants []*mutant, copies map[string][]*mutant) []byte {
	byFunction := map[*ast.FuncDecl][]*mutant{}
	for _, m := range mutants {
		byFunction[m.function] = append(byFunction[m.function], m)
	}
	var edits []edit
	for _, mutants := range byFunction {
		edits = append(edits, dispatch(mutants)...)
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.offset, a.offset) })
	code := slices.Clone(mutants[0].original)
	for _, e := range edits {
		code = slices.Replace(code, e.offset, e.offset+e.length, []byte(e.text)...)
	}
	lines := make([]*mutant, bytes.Count(code, []byte("\n"))+2)
	code = append(code, '\n')
	for _, m := range mutants {
		begin, name, end := m.offset(m.function.Pos()), m.offset(m.function.Name.End()), m.offset(m.function.End())
		end += len(m.code) - len(m.original)
		text := fmt.Sprintf("%s_%d%s\n", m.code[begin:name], m.number, m.code[name:end])
		code = append(code, text...)
		lines = append(lines, slices.Repeat([]*mutant{m}, strings.Count(text, "\n"))...)
	}
	copies[filepath.Base(mutants[0].file)] = lines
	return code
}

type edit struct {
	offset, length int
	text           string
}

func dispatch(mutants []*mutant) (edits []edit) {
	m, function := mutants[0], mutants[0].function
	names := func(list *ast.FieldList) (names []string) {
		for _, field := range list.List {
			dots := ""
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				dots = "..."
			}
			if len(field.Names) == 0 {
				name := fmt.Sprintf("mutant%d", len(edits))
				edits = append(edits, edit{m.offset(field.Type.Pos()), 0, name + " "})
				names = append(names, name+dots)
			}
			for _, ident := range field.Names {
				name := ident.Name
				if name == "_" {
					name = fmt.Sprintf("mutant%d", len(edits))
					edits = append(edits, edit{m.offset(ident.Pos()), 1, name})
				}
				names = append(names, name+dots)
			}
		}
		return names
	}
	receiver, arguments, types := "", strings.Join(names(function.Type.Params), ", "), ""
	if function.Recv != nil {
		receiver = names(function.Recv)[0] + "."
	}
	if function.Type.TypeParams != nil {
		types = "[" + strings.Join(names(function.Type.TypeParams), ", ") + "]"
	}
	var text strings.Builder
	text.WriteString(" switch mutant {")
	for _, m := range mutants {
		call := fmt.Sprintf("%s%s_%d%s(%s)", receiver, function.Name.Name, m.number, types, arguments)
		if function.Type.Results == nil {
			fmt.Fprintf(&text, " case %d: %s; return;", m.number, call)
		} else {
			fmt.Fprintf(&text, " case %d: return %s;", m.number, call)
		}
	}
	text.WriteString("}; ")
	return append(edits, edit{m.offset(function.Body.Lbrace) + 1, 0, text.String()})
}

// A program has changed files, and test binaries that were built with them.
type program struct {
	scratch string
	replace map[string]string // the changed files, for go's -overlay flag
	tests   map[*suite]string // "" if a package has no tests
}

func (p *program) put(file string, code []byte) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	changed := filepath.Join(p.scratch, filepath.Base(file))
	p.replace[file] = changed
	return os.WriteFile(changed, code, 0o600)
}

func (p *program) run(dir, command string, args ...string) (string, error) {
	overlay, err := json.Marshal(map[string]any{"Replace": p.replace})
	file := filepath.Join(p.scratch, "overlay.json")
	if err == nil {
		err = os.WriteFile(file, overlay, 0o600)
	}
	if err != nil {
		return "", err
	}
	return runIn(dir, nil, 2*maxTimeout, "go", append([]string{command, "-overlay", file}, args...)...)
}

// The result is "" if the package has no tests.
func (p *program) test(s *suite) (string, error) {
	if test, ok := p.tests[s]; ok {
		return test, nil
	}
	test := filepath.Join(p.scratch, strconv.Itoa(len(p.tests))+".test")
	if out, err := p.run(s.dir, "test", "-c", "-vet=off", "-o", test, "."); err != nil {
		return "", fmt.Errorf("go test -c in %s: %w\n%s", s.dir, err, out)
	}
	if _, err := os.Stat(test); err != nil {
		test = "" //nolint:nilerr // go builds no binary for a package without tests
	}
	if p.tests == nil {
		p.tests = map[*suite]string{}
	}
	p.tests[s] = test
	return test, nil
}
