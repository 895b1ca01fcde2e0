package discovery

import (
	"fmt"
	"path"
	"reflect"
)

// SourceOption is an option of one source, for the field Sources of understudy.Options. The
// packages of sources have functions that return them.
type SourceOption struct {
	of  reflect.Type // the T of OwnOption
	set any          // a func(*T)
}

// OwnOption returns an option for your own source. set changes a T, which is a type of the source's
// package. OwnOptions returns the result.
func OwnOption[T any](set func(*T)) SourceOption {
	return SourceOption{reflect.TypeFor[T](), set}
}

// OwnOptions returns defaults, changed by each option for T in the given order.
func OwnOptions[T any](t *Target, defaults T) T {
	if t.asked != nil {
		t.asked.Store(reflect.TypeFor[T](), true)
	}
	for _, given := range t.given.Sources {
		if o, ok := given.(SourceOption); ok && o.of == reflect.TypeFor[T]() {
			o.set.(func(*T))(&defaults)
		}
	}
	return defaults
}

// unasked returns notes about options of sources that have no effect on a parsed target.
func (t *Target) unasked() (notes []string) {
	for _, given := range t.given.Sources {
		o, ok := given.(SourceOption)
		if !ok {
			continue
		}
		if _, asked := t.asked.LoadOrStore(o.of, true); !asked {
			notes = append(notes, fmt.Sprintf("an option of package %s, which the program gives in Sources, has no effect: no part of the target is of that source", path.Base(o.of.PkgPath())))
		}
	}
	return notes
}
