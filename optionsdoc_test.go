package understudy_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"testing"

	"github.com/understudy-lb/understudy"
	"github.com/understudy-lb/understudy/internal/config/options"
)

func TestEachOptionIsDocumented(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "options.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := doc.NewFromFiles(files, []*ast.File{file}, "github.com/understudy-lb/understudy")
	if err != nil {
		t.Fatal(err)
	}
	comments := make(map[string]string)
	for _, typ := range pkg.Types {
		of, ok := typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
		if typ.Name != "Options" || !ok {
			continue
		}
		for _, f := range of.Fields.List {
			for _, name := range f.Names {
				comments[name.Name] = f.Doc.Text()
			}
		}
	}
	given, source := regexp.MustCompile(`\b[Dd]efault\b`), regexp.MustCompile(`\bgRFC A\d+|\bSource:\s`)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[understudy.Options]()) {
		if text := comments[f.Name]; !given.MatchString(text) || !source.MatchString(text) {
			t.Errorf("the comment of %s lacks its default or its source: %q", f.Name, text)
		}
	}
	for _, o := range options.Table() {
		if comments[options.ByField(o.Name)] == "" {
			t.Errorf("understudy.Options has no field %s, which the table has", options.ByField(o.Name))
		}
	}
}
