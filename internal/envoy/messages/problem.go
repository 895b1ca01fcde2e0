package messages

import (
	"fmt"
	"strings"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

// MaxProblems is the maximum number of problems that an Invalid lists. It only counts the others.
const MaxProblems = 20

// Problem is a mistake in an input, or a note about it.
type Problem struct {
	// Path is the path of the field, such as "endpoints[2].lb_endpoints[0].load_balancing_weight",
	// or "" if the problem concerns the whole message.
	Path string
	Text string
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// Within returns a copy of the problem with part prepended to its path.
func (p Problem) Within(part string) Problem {
	p.Path = strings.TrimSuffix(part+"."+p.Path, ".")
	return p
}

// Invalid is the error for a rejected input.
type Invalid struct {
	// Problems are in the order of the input. There is at least one.
	Problems []Problem
	More     int
}

// Refused implements the interface of discovery.Refused.
func (e *Invalid) Refused() bool { return true }

// Error returns the problems on one line.
func (e *Invalid) Error() string {
	texts := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		texts = append(texts, p.String())
	}
	if e.More > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", e.More))
	}
	return strings.Join(texts, "; ")
}

// MaxText is the maximum length of a problem's text in bytes. A name in the text may be as long as
// the input.
const MaxText = 500

// Add adds a problem and truncates its text to MaxText. If there are already MaxProblems problems,
// Add only counts the new one.
func (e *Invalid) Add(path, format string, args ...any) {
	if len(e.Problems) == MaxProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, Problem{Path: path, Text: printable.Line(fmt.Sprintf(format, args...), MaxText)})
}

// Err returns e, or nil if there are no problems.
func (e *Invalid) Err() error {
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}
