package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declarations are the names that the Go files of a directory declare, without their types.
type declarations struct {
	topLevel map[string]bool
	types    map[string]*typeNames
	members  map[string]bool     // fields and methods of all types, also of those without a name
	jsonTags map[string]bool     // names of fields in JSON and YAML
	used     map[string]bool     // all identifiers
	literals map[string]bool     // all words in literals
	imports  map[string][]string // by local name; files may use a name for different packages
}

type typeNames struct {
	members map[string]bool
	bases   []ast.Expr // embedded types, and the type in the definition
}

func newDeclarations() *declarations {
	return &declarations{
		topLevel: make(map[string]bool),
		types:    make(map[string]*typeNames),
		members:  make(map[string]bool),
		jsonTags: make(map[string]bool),
		used:     make(map[string]bool),
		literals: make(map[string]bool),
		imports:  make(map[string][]string),
	}
}

func (d *declarations) typeNamed(name string) *typeNames {
	if d.types[name] == nil {
		d.types[name] = &typeNames{members: make(map[string]bool)}
	}
	return d.types[name]
}

func (d *declarations) add(file *ast.File) {
	for _, spec := range file.Imports {
		from, _ := strconv.Unquote(spec.Path.Value)
		name := packageName(from)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if !slices.Contains(d.imports[name], from) {
			d.imports[name] = append(d.imports[name], from)
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				d.topLevel[decl.Name.Name] = true
				break
			}
			d.members[decl.Name.Name] = true
			if of := baseName(decl.Recv.List[0].Type); of != "" {
				d.typeNamed(of).members[decl.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				d.addSpec(spec)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			d.used[n.Name] = true
		case *ast.BasicLit:
			for _, word := range literalWord.FindAllString(n.Value, -1) {
				d.literals[word] = true
			}
		case *ast.StructType:
			addFields(d.members, n.Fields)
			for _, f := range n.Fields.List {
				if name := jsonName(f); name != "" {
					d.jsonTags[name] = true
				}
			}
		case *ast.InterfaceType:
			addFields(d.members, n.Methods)
		}
		return true
	})
}

func (d *declarations) addSpec(spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			d.topLevel[name.Name] = true
		}
	case *ast.TypeSpec:
		d.topLevel[spec.Name.Name] = true
		t := d.typeNamed(spec.Name.Name)
		var fields *ast.FieldList
		switch definition := spec.Type.(type) {
		case *ast.StructType:
			fields = definition.Fields
		case *ast.InterfaceType:
			fields = definition.Methods
		default:
			t.bases = append(t.bases, definition)
			return
		}
		addFields(t.members, fields)
		for _, f := range fields.List {
			if len(f.Names) == 0 {
				t.bases = append(t.bases, f.Type)
			}
		}
	}
}

func addFields(to map[string]bool, fields *ast.FieldList) {
	for _, f := range fields.List {
		for _, name := range fieldNames(f) {
			to[name] = true
		}
	}
}

func fieldNames(f *ast.Field) (names []string) {
	for _, name := range f.Names {
		names = append(names, name.Name)
	}
	if len(names) == 0 {
		names = append(names, baseName(f.Type))
	}
	return names
}

var (
	literalWord = regexp.MustCompile(`\w+`)
	jsonPattern = regexp.MustCompile(`(?:json|yaml):"([^",]+)`)
)

func jsonName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	if match := jsonPattern.FindStringSubmatch(f.Tag.Value); match != nil {
		return match[1]
	}
	return ""
}

// baseName returns the name of a type without its package, its type arguments and its *.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	}
	return ""
}

var majorVersion = regexp.MustCompile(`^v\d+$`)

func packageName(importPath string) string {
	if base := path.Base(importPath); !majorVersion.MatchString(base) {
		return base
	}
	return path.Base(path.Dir(importPath))
}

// tree holds the declarations of all packages that comments mention.
type tree struct {
	positions *token.FileSet
	files     map[string]*ast.File
	ours      map[string]*declarations // by directory
	others    map[string]*declarations // by import path; nil if Go cannot find the package
	jsonTags  map[string]bool
}

func readTree(t *testing.T) *tree {
	t.Helper()
	all := &tree{
		token.NewFileSet(), make(map[string]*ast.File), make(map[string]*declarations), make(map[string]*declarations), make(map[string]bool),
	}
	sources(t, func(file string) {
		if !strings.Contains(file, "testdata/") {
			all.parse(t, file)
		}
	}, ".")
	return all
}

func (a *tree) parse(t *testing.T, file string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.ParseFile(a.positions, file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	a.files[file] = parsed
	dir := path.Dir(file)
	if a.ours[dir] == nil {
		a.ours[dir] = newDeclarations()
	}
	a.ours[dir].add(parsed)
	maps.Copy(a.jsonTags, a.ours[dir].jsonTags)
}

func (a *tree) sortedFiles() []string { return slices.Sorted(maps.Keys(a.files)) }

// modulesOutsideWorkspace may import packages whose checksums are not in go.work.sum. To look for
// such a package would add its checksum.
var modulesOutsideWorkspace = regexp.MustCompile(`^test/(tools|peers|apiserver)(/|$)`)

// readOthers reads packages of other modules, if wanted accepts a directory that imports them and
// their name there.
func (a *tree) readOthers(t *testing.T, wanted func(d *declarations, name string) bool) {
	t.Helper()
	missing := make(map[string]bool)
	for dir, d := range a.ours {
		if modulesOutsideWorkspace.MatchString(dir) {
			continue
		}
		for name, paths := range d.imports {
			for _, from := range paths {
				if _, ours := directoryOf(from); !ours && a.others[from] == nil && wanted(d, name) {
					missing[from] = true
				}
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	for _, p := range listWithoutDeps(t, slices.Sorted(maps.Keys(missing))...) {
		if len(p.GoFiles) == 0 {
			continue
		}
		d := newDeclarations()
		for _, file := range p.GoFiles {
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			d.add(parsed)
		}
		a.others[p.ImportPath] = d
	}
}

// imported returns the declarations of the packages that a name may denote in the files of a
// directory. If they do not import one by this name, it may denote what other files import. known is
// false if the package cannot be found.
func (a *tree) imported(d *declarations, name string) (found []*declarations, known bool) {
	paths := d.imports[name]
	if len(paths) == 0 {
		for dir, other := range a.ours {
			paths = append(paths, other.imports[name]...)
			if path.Base(dir) == name {
				found = append(found, other)
			}
		}
	}
	known = true
	for _, from := range paths {
		if p := a.packageAt(from); p != nil {
			found = append(found, p)
		} else {
			known = false
		}
	}
	return found, known
}

func (a *tree) packageAt(importPath string) *declarations {
	if dir, ours := directoryOf(importPath); ours {
		return a.ours[dir]
	}
	return a.others[importPath]
}

// hasMember reports whether a type of d has a field or a method, which may come from an embedded
// type. It is lenient if the package of an embedded type was not read.
func (a *tree) hasMember(d *declarations, typeName, member string) bool {
	t := d.types[typeName]
	if t == nil {
		return false
	}
	if t.members[member] {
		return true
	}
	return slices.ContainsFunc(t.bases, func(base ast.Expr) bool {
		if star, ok := base.(*ast.StarExpr); ok {
			base = star.X
		}
		if index, ok := base.(*ast.IndexExpr); ok {
			base = index.X
		}
		switch base := base.(type) {
		case *ast.Ident:
			return base.Name != typeName && a.hasMember(d, base.Name, member)
		case *ast.SelectorExpr:
			from, ok := base.X.(*ast.Ident)
			if !ok {
				return false
			}
			found, known := a.imported(d, from.Name)
			return !known || slices.ContainsFunc(found, func(p *declarations) bool { return a.hasMember(p, base.Sel.Name, member) })
		}
		return false
	})
}

type pkgFiles struct {
	ImportPath string
	Dir        string
	GoFiles    []string
}

// listWithoutDeps finds the files of packages. A package that Go does not find has none.
func listWithoutDeps(t *testing.T, importPaths ...string) (packages []pkgFiles) {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-e", "-find", "-json=ImportPath,Dir,GoFiles"}, importPaths...)...)
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command.Args, err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p pkgFiles
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}
