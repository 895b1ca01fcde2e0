// Package priorityscenario runs text scenarios of priority, both against the core alone and against
// the real policy over fake children.
//
// A scenario starts with a line `new name`. These are its directives. The output lists the policy's
// actions, in order.
//
//	update p0 p1 …             updates the policy to these priorities; the option children
//	                           adds children that are not priorities
//	report p0 STATE [tag]      the child reports a state; the tag distinguishes its pickers
//	advance 10s                time passes
//	exit-idle
//	resolver-error text
//	re-resolve p0              the child asks for re-resolution
//	close
//
// The options of update are children=(p0, p1) for all configured children, ignore=(p0) for children
// whose re-resolution requests are ignored, timeout=10s, retention=15m and removed=15m for the
// durations, warm=1 for the number of standbys, of=(0,0,1) for the source's priority of each near
// group, and overflow=yes.
//
// Below a directive there can be endpoints of an update, such as `10.0.0.1:80 p0 locality`, and
// what children do if the directive makes the policy update them:
//
//	p0: report READY [tag]
//	p0: error text
package priorityscenario

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	core "github.com/understudy-lb/understudy/internal/core/priority"
)

type Target interface {
	Script(map[string][]Reaction)
	Update(Update)
	Report(child string, report Report)
	Advance(d time.Duration)
	ExitIdle()
	ResolverError(err error)
	Resolve(child string)
	Close()
	// Take returns the lines that were logged since the previous Take:
	//
	//	create p0 [10.0.0.1:80[locality] …]     with the endpoints of its first update
	//	update p0 [10.0.0.1:80[locality] …]
	//	exit-idle p0
	//	resolver-error p0 text
	//	destroy p0
	//	resolve
	//	publish p0 STATE [tag]
	//	publish CONNECTING                      while the child in use has not reported a state
	//	publish TRANSIENT_FAILURE: error        with an error of the policy itself
	//	error: text                             which Update returned
	Take() []string
}

type Update struct {
	Config    core.Config
	Ignore    []string
	Endpoints []Endpoint
}

type Endpoint struct {
	Address string
	Path    []string
}

type Report struct {
	State core.State
	Tag   string
}

func (r Report) Err() error {
	if r.Tag == "" {
		return errors.New("failed")
	}
	return errors.New(r.Tag)
}

func (r Report) Line(child string) string {
	return strings.TrimSpace(fmt.Sprintf("publish %s %v %s", child, r.State, r.Tag))
}

type Reaction struct {
	Report Report
	Err    error
}

// SortSimultaneous sorts consecutive "destroy" lines and consecutive "resolver-error" lines,
// because they can come in any order.
func SortSimultaneous(lines []string) {
	for i := 1; i < len(lines); i++ {
		for j := i; j > 0 && simultaneous(lines[j-1], lines[j]) && lines[j] < lines[j-1]; j-- {
			lines[j-1], lines[j] = lines[j], lines[j-1]
		}
	}
}

func simultaneous(a, b string) bool {
	for _, verb := range []string{"destroy ", "resolver-error "} {
		if strings.HasPrefix(a, verb) && strings.HasPrefix(b, verb) {
			return true
		}
	}
	return false
}

func Run(t *testing.T, path string, newTarget func() Target) {
	target := newTarget()
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd == "new" {
			target.Close()
			target = newTarget()
			return ""
		}
		if err := drive(target, d); err != nil {
			d.Fatalf(t, "%v", err)
		}
		lines := target.Take()
		SortSimultaneous(lines)
		if len(lines) > 0 {
			return strings.Join(lines, "\n") + "\n"
		}
		return "nothing\n"
	})
	target.Close()
}
