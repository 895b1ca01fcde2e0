package messages

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// MaxProblems is the maximum number of problems that an Invalid lists. It only counts the others.
const MaxProblems = 20

// Problem is a mistake in an input, or a note about it.
type Problem struct {
	// Path is the path of the field, such as "endpoints[2].lb_endpoints[0].load_balancing_weight",
	// or "" if the problem concerns the whole message.
	Path string
	At   Position // in the file that has the field, if there is one
	Text string
}

// Position is a place in a file. The zero value is none.
type Position struct {
	File         string
	Line, Column int
}

func (p Problem) String() string {
	switch {
	case p.At.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", p.At.File, p.At.Line, p.At.Column, p.Text)
	case p.Path != "":
		return p.Path + ": " + p.Text
	}
	return p.Text
}

// Within returns a copy of the problem with part prepended to its path.
func (p Problem) Within(part string) Problem {
	p.Path = strings.Trim(part+"."+p.Path, ".")
	return p
}

// Invalid is the error for a rejected input.
type Invalid struct {
	// Problems are in the order of the input. There is at least one.
	Problems []Problem
	More     int
}

// Refused makes metrics count the failure as refused.
func (e *Invalid) Refused() bool { return true }

// Error returns the problems on one line.
func (e *Invalid) Error() string { return strings.Join(e.texts(), "; ") }

func (e *Invalid) texts() []string {
	texts := Texts(e.Problems)
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return texts
}

// MaxText is the maximum length of a problem's text in bytes. A name in the text may be as long as
// the input.
const MaxText = 500

// Add adds a problem and truncates its text to MaxText. If there are already MaxProblems problems,
// Add only counts the new one.
func (e *Invalid) Add(path, format string, args ...any) {
	e.add(Problem{Path: path, Text: printable.Line(fmt.Sprintf(format, args...), MaxText)})
}

// AddAt is like Add for a problem in a file.
func (e *Invalid) AddAt(at Position, format string, args ...any) {
	e.add(Problem{At: at, Text: printable.Line(fmt.Sprintf(format, args...), MaxText)})
}

// Merge adds the problems of an *Invalid about the field at a path.
func (e *Invalid) Merge(path string, err error) {
	if other, ok := errors.AsType[*Invalid](err); ok {
		for _, p := range other.Problems {
			e.add(p.Within(path))
		}
		e.More += other.More
	}
}

func (e *Invalid) add(p Problem) {
	if len(e.Problems) == MaxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, p)
}

// AddUnused adds a note for each field that is set, but not among those that are used.
func (e *Invalid) AddUnused(path string, m proto.Message, used ...protoreflect.Name) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).Name(); m.ProtoReflect().Has(fields.Get(i)) && !slices.Contains(used, name) {
			e.Add(strings.Trim(path+"."+string(name), "."), "%s has no effect", name)
		}
	}
}

// Err returns e with its problems in the order of the file, or nil if there are none.
func (e *Invalid) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	return e
}

// Texts returns the text of each note.
func Texts(notes []Problem) (texts []string) {
	for _, n := range notes {
		texts = append(texts, n.String())
	}
	return texts
}
