package priority

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/shell"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
	scenario "github.com/understudy-lb/understudy/internal/testing/priorityscenario"
)

// The application receives the priority in use, the time and the reason, or why there is none. Its
// logger gets a record of each change.
func TestApplicationReceivesPriorityInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		var records bytes.Buffer
		begin := time.Now()
		reporter := stateattr.NewInUseReporter(func(p stateattr.PriorityInUse) {
			told = append(told, fmt.Sprintf("%d %s %v since %v: %s", p.Index, p.Name, p.State, p.Since.Sub(begin), p.Why))
		})
		r := newRecorder()
		state := r.state(update("p0", "p1"))
		state.ResolverState = stateattr.SetChannel(state.ResolverState, &stateattr.Channel{
			InUse: reporter.Channel("target"), Logger: slog.New(slog.NewTextHandler(&records, nil)),
		})
		if err := r.policy.UpdateClientConnState(state); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			child  string
			report scenario.Report
			want   string
		}{
			{"p0", ready, "0 p0 READY since 0s: "},
			{"p0", failed, "1 p1 CONNECTING since 2s: p0: refused"},
			{"p1", ready, "1 p1 READY since 2s: p0: refused"},
			{"p1", failed, "-1 none TRANSIENT_FAILURE since 4s: no priority can take calls: p0: refused (failing for 2 s); p1: refused"},
			{"p1", ready, "1 p1 READY since 5s: p1 can take calls again"},
			{"p0", ready, "0 p0 READY since 6s: p0 can take calls again"},
		} {
			time.Sleep(time.Second)
			r.Report(step.child, step.report)
			synctest.Wait()
			if got := told[len(told)-1]; got != step.want {
				t.Errorf("after %v of %s, the application was told %q, want %q", step.report.State, step.child, got, step.want)
			}
		}
		for _, want := range []string{
			`level=WARN msg=failover target=lbtest:///target from=p0 to=p1 state=CONNECTING after=0s reason="p0: refused"`,
			`level=WARN msg=recovered target=lbtest:///target to=p1 after=1s`,
		} {
			if !strings.Contains(records.String(), want) {
				t.Errorf("the logger got\n%s\nwant %s", records.String(), want)
			}
		}
		r.Close()
	})
}

// The error of a failed call lists the reasons of at most eight priorities. Each reason contains at
// most 250 bytes of the child's error (docs/limits.md).
func TestReasonsInErrorAreLimited(t *testing.T) {
	p := newStubbed(t, nil)
	names := strings.Fields("a b c d e f g h i")
	if err := p.update(resolver.State{}, "", names...); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p.wait()
		p.Get(name).CC.UpdateState(shell.Failed(errors.New(strings.Repeat(name, 251))))
	}
	p.wait()
	var want []string
	for i, name := range names[:8] {
		want = append(want, fmt.Sprintf("p%d %s: %s… (251 bytes)", i, name, strings.Repeat(name, 250)))
	}
	want = append(want, "and 1 more")
	if got := lbtest.Pick(p.cc.State()); got != "fail: no priority can take calls: "+strings.Join(want, "; ") {
		t.Errorf("calls get %q, want %q", got, want)
	}
}
