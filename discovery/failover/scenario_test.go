package failover

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// TestScenarios runs the files in testdata. The output of a command shows the updates of the
// channel and the events of the entries' resolvers:
//
//	build a b c          build a resolver for a target with these entries
//	answer a 10.0.0.1:1  a's resolver answers
//	fail a text          a's resolver reports an error
//	pass 10s             wait for 10 s
//	resolve-now [a]      the channel, or the child of a, requests re-resolution
//	refuse [text]        the channel returns this error to updates from now on
//	close
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			s := &scenario{fakeBuilder: newFakeBuilder(), channel: &channel{}}
			datadriven.RunTest(t, path, s.run)
			if s.resolver != nil {
				s.resolver.Close()
			}
		})
	})
}

type scenario struct {
	*fakeBuilder
	*channel
	resolver resolver.Resolver
}

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, a.Key)
	}
	switch d.Cmd {
	case "build":
		if s.resolver != nil {
			s.resolver.Close()
		}
		s.updateErr = nil
		s.take()
		r, err := build(s.fakeBuilder, s.channel, args...)
		if err != nil {
			return err.Error() + "\n"
		}
		s.resolver = r
	case "answer":
		s.resolvers[args[0]].answer(args[1:]...)
	case "fail":
		s.resolvers[args[0]].fail(d.Input)
	case "pass":
		duration, err := time.ParseDuration(args[0])
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		<-time.After(duration)
	case "resolve-now":
		if len(args) == 0 {
			s.resolver.ResolveNow(resolver.ResolveNowOptions{})
		} else {
			stateattr.ResolveNow(s.lastState)("fake:"+args[0], false)
		}
	case "refuse":
		s.updateErr = nil
		if d.Input != "" {
			s.updateErr = errors.New(d.Input)
		}
	case "close":
		s.resolver.Close()
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	synctest.Wait()
	return s.take()
}

func (s *scenario) take() string {
	lines := strings.SplitAfter(s.fakeBuilder.take(), "\n")
	slices.Sort(lines)
	if seen := s.channel.take() + strings.Join(lines, ""); seen != "" {
		return seen
	}
	return "nothing\n"
}
