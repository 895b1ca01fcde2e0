package arch

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unresolved returns the names in comments that do not exist. It looks at these forms:
//
//   - `X.Y` and `X.Y.Z`. If X is a package that the directory's files import, or the directory's own
//     package, the package must declare Y. If X is a type of the directory or of a package that it
//     imports, X must have the field or method Y. Otherwise X counts as a variable, whose type is not
//     known here: the directory, or a package that it imports, must have a field or method Y, or any
//     package a field with this name in JSON. Pairs in lower case, such as `a.b`, are only names if
//     the directory's code contains the word before the dot.
//   - `[X]`, if X is exported. The directory must declare X.
//   - `someName`. The directory's code must contain it, or any package as the name of a field in JSON.
//   - `SomeName`. Any code must contain it.
//   - `Name` within a sentence. The directory's code must contain it, or a package that it imports must
//     declare it. Proper names are in properNames.
//
// Plurals of names count as names. Quoted text and code blocks are not checked, and neither are names
// of files and hosts.
func (a *tree) unresolved(t *testing.T) (found []problem) {
	t.Helper()
	var all []mention
	packages := make(map[string]bool)
	for _, file := range a.sortedFiles() {
		for _, group := range a.files[file].Comments {
			for _, m := range mentionsIn(group) {
				m.directory = a.ours[path.Dir(file)]
				m.inPackage = path.Base(path.Dir(file))
				if x, _, dotted := strings.Cut(m.name, "."); dotted {
					packages[x] = true
				}
				all = append(all, m)
			}
		}
	}
	a.readOthers(t, func(_ *declarations, name string) bool { return packages[name] })
	all = slices.DeleteFunc(all, a.resolves)
	if len(all) > 0 { // they may be in a package that is imported but not mentioned
		directories := make(map[*declarations]bool)
		for _, m := range all {
			directories[m.directory] = true
		}
		a.readOthers(t, func(d *declarations, _ string) bool { return directories[d] })
	}
	for _, m := range slices.DeleteFunc(all, a.resolves) {
		position := a.positions.Position(m.group.Pos())
		position.Line += m.line
		found = append(found, problem{position, m.name, fmt.Sprintf("the comment mentions %s, which does not exist: correct it or, if it is not a name in code, add it to properNames", m.name)})
	}
	return found
}

// properNames look like names in code.
var properNames = append(
	[]string{
		"Close",         // of gRPC's policies, where a package does not import them
		"EdfEntry",      // in Envoy
		"MultiEndpoint", // in grpc-gcp-go
		"uXXXX",         // in escape sequences

		"Service_Method_FullMethodName", // in generated code
		"loadBalancingConfig",           // in service configs
	}, strings.Fields(`
		Chromium ConfigMap Consul Deployment DevTools English Envoy Eyeballs Go Happy JavaScript Kubernetes Levenshtein Linux
		Markdown OpenTelemetry Service Understudy Unix gRFC gRFCs gRPC kB kuberesolver mTLS xDS
	`)...,
)

// notNames lists what follows the last dot in names of files and hosts.
var notNames = []string{
	"com", "crt", "csv", "dev", "go", "io", "js", "md", "mod", "proto", "svg", "test", "yaml",
}

type mention struct {
	group     *ast.CommentGroup
	line      int // in the group
	name      string
	link      bool // in brackets
	directory *declarations
	inPackage string
}

var (
	quotedText = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]*”")
	dotted     = regexp.MustCompile(`\[?\*?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\]?`)
	camelCase  = regexp.MustCompile(`^[A-Z]*[a-z]+[a-z0-9]*[A-Z]\w*$`)
	capital    = regexp.MustCompile(`^[A-Z][a-z]\w*$`)
	midway     = regexp.MustCompile(`[a-z,;)](\n? )$`) // the text before a word within a sentence
)

func mentionsIn(group *ast.CommentGroup) (found []mention) {
	text := proseOfComment(group)
	for _, at := range dotted.FindAllStringIndex(text, -1) {
		name, before, after := text[at[0]:at[1]], text[:at[0]], text[at[1]:]
		m := mention{group: group, line: strings.Count(before, "\n"), name: strings.Trim(name, "[*]")}
		m.link = strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]")
		parts := strings.Split(m.name, ".")
		partOfPath := strings.ContainsAny(before[max(0, len(before)-1):], `/:@-.=<>\$`) || strings.ContainsAny(after[:min(1, len(after))], "/@-")
		switch {
		case len(parts) == 1 && (m.link && ast.IsExported(m.name) || camelCase.MatchString(m.name)),
			capital.MatchString(m.name) && midway.MatchString(before[max(0, len(before)-3):]),
			len(parts) == 2 && !slices.Contains(notNames, parts[1]),
			len(parts) > 2 && ast.IsExported(parts[1]):
			if !partOfPath {
				found = append(found, m)
			}
		}
	}
	return found
}

// proseOfComment returns the lines of a comment. It leaves out quoted text, and the content of lines
// that begin with a tab or a directive.
func proseOfComment(group *ast.CommentGroup) string {
	var lines []string
	for _, c := range group.List {
		for line := range strings.SplitSeq(c.Text, "\n") {
			line = strings.TrimPrefix(line, "//")
			if !strings.HasPrefix(line, " ") {
				line = ""
			}
			lines = append(lines, line)
		}
	}
	return quotedText.ReplaceAllStringFunc(strings.Join(lines, "\n"), func(quoted string) string {
		return `"` + strings.Repeat("\n", strings.Count(quoted, "\n")) + `"`
	})
}

func (a *tree) resolves(m mention) bool {
	if singular, plural := strings.CutSuffix(m.name, "s"); plural && a.exists(m, singular) {
		return true
	}
	return a.exists(m, m.name)
}

func (a *tree) exists(m mention, name string) bool {
	x, rest, dotted := strings.Cut(name, ".")
	switch {
	case !dotted && m.link:
		return m.directory.topLevel[x]
	case !dotted:
		return a.occurs(m.directory, x)
	}
	y, z, _ := strings.Cut(rest, ".")
	packages, known := a.imported(m.directory, x)
	if x == m.inPackage {
		packages = append(packages, m.directory)
	}
	for _, p := range packages {
		if p.topLevel[y] && (z == "" || p.types[y] == nil || a.hasMember(p, y, z)) {
			return true
		}
	}
	if !known {
		return true
	}
	reach := a.reach(m.directory)
	var ofType []*declarations
	for _, p := range reach {
		if p.topLevel[x] && p.types[x] != nil {
			ofType = append(ofType, p)
		}
	}
	if len(ofType) > 0 {
		return slices.ContainsFunc(ofType, func(p *declarations) bool { return a.hasMember(p, x, y) })
	}
	switch {
	case ast.IsExported(y) && len(packages) > 0:
		return false
	case !ast.IsExported(x) && !ast.IsExported(y) && !m.directory.used[x]:
		return true
	}
	return a.jsonTags[y] || slices.ContainsFunc(reach, func(p *declarations) bool { return p.members[y] })
}

func (a *tree) occurs(d *declarations, word string) bool {
	if d.used[word] || d.literals[word] || a.jsonTags[word] || slices.Contains(properNames, word) {
		return true
	}
	if !ast.IsExported(word) {
		return false
	}
	if !camelCase.MatchString(word) {
		return slices.ContainsFunc(a.reach(d), func(p *declarations) bool { return p.topLevel[word] || p.members[word] })
	}
	for _, packages := range []map[string]*declarations{a.ours, a.others} {
		for _, p := range packages {
			if p.used[word] || p.literals[word] {
				return true
			}
		}
	}
	return false
}

// reach returns d and the packages that it imports, as far as they were read.
func (a *tree) reach(d *declarations) []*declarations {
	found := []*declarations{d}
	for _, paths := range d.imports {
		for _, from := range paths {
			if p := a.packageAt(from); p != nil {
				found = append(found, p)
			}
		}
	}
	return found
}
