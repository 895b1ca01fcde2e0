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

// MaxProblems is how many problems an Invalid lists. Any more are only counted.
const MaxProblems = 20

// Problem is a mistake in the input, or a note about it.
type Problem struct {
	// Path is the path of the field, e.g. "endpoints[2].lb_endpoints[0].load_balancing_weight", or
	// "" if the problem is with the whole message.
	Path string
	At   Position // where the field is, if it's from a file
	Text string
}

// Position is a place in a file. The zero value means there's none.
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

// Within prepends part to the path of the problem.
func (p Problem) Within(part string) Problem {
	p.Path = strings.Trim(part+"."+p.Path, ".")
	return p
}

// Invalid is the error for input that we reject.
type Invalid struct {
	// Problems are in the order of the input. There is at least one.
	Problems []Problem
	More     int
}

// Refused makes metrics count the failure as refused.
func (e *Invalid) Refused() bool { return true }

func (e *Invalid) Error() string { return strings.Join(e.texts(), "; ") }

func (e *Invalid) texts() []string {
	texts := Texts(e.Problems)
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return texts
}

// MaxText is the maximum length of a problem's text in bytes. We need a limit because a name in the
// text could be as long as the whole input.
const MaxText = 500

// Add adds a problem, with its text truncated to MaxText. Once there are MaxProblems problems, we
// only count new ones.
func (e *Invalid) Add(path, format string, args ...any) {
	e.add(Problem{Path: path, Text: printable.Line(fmt.Sprintf(format, args...), MaxText)})
}

// AddAt is like Add for a problem in a file.
func (e *Invalid) AddAt(at Position, format string, args ...any) {
	e.add(Problem{At: at, Text: printable.Line(fmt.Sprintf(format, args...), MaxText)})
}

// Merge adds the problems in err, if it's an *Invalid. Their paths are relative to path.
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

// AddUnused adds a note for each field of m that's set but not used.
func (e *Invalid) AddUnused(path string, m proto.Message, used ...protoreflect.Name) {
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if name := fields.Get(i).Name(); m.ProtoReflect().Has(fields.Get(i)) && !slices.Contains(used, name) {
			e.Add(strings.Trim(path+"."+string(name), "."), "%s has no effect", name)
		}
	}
}

// Err sorts the problems by their position in the file and returns e, or nil if there aren't any.
func (e *Invalid) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.At.Line, b.At.Line), cmp.Compare(a.At.Column, b.At.Column))
	})
	return e
}

func Texts(notes []Problem) (texts []string) {
	for _, n := range notes {
		texts = append(texts, n.String())
	}
	return texts
}
