package join

import (
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
)

// The names of children differ, even if the name of one mechanism looks like that of another's
// child.
func TestNamesOfChildrenDiffer(t *testing.T) {
	resolved := discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.9:1"}}}}}
	for _, test := range []struct {
		first, second string
		answers       [2]discovery.Answer
		want          string
	}{
		{"x", "x/child0", [2]discovery.Answer{answerOf(1), answerOf(2)}, `["x/child0","x'child0'2/child0"]`},
		{"x/child0", "x", [2]discovery.Answer{answerOf(1), answerOf(2)}, `["x/child0/child0","x'2/child0"]`},
		{"x", "x/child0", [2]discovery.Answer{answerOf(1), resolved}, `["x/child0","x'child0'2"]`},
		{"x", "y", [2]discovery.Answer{answerOf(1), resolved}, `["x/child0","y"]`},
	} {
		synctest.Test(t, func(t *testing.T) {
			parent, sources := &fakeSource{}, [2]*fakeSource{{}, {}}
			cc, c := start(t, configOf(nil, "", parent))
			defer c.Close()
			parent.Mechanisms([]discovery.Mechanism{{Name: test.first, Source: sources[0]}, {Name: test.second, Source: sources[1]}})
			synctest.Wait()
			for i, s := range sources {
				_ = s.Update(test.answers[i])
			}
			cc.last()
			if _, got, _ := strings.Cut(cc.config(), `"priorities":`); !strings.HasPrefix(got, test.want) {
				t.Errorf("the list %s, %s: the channel got the priorities %s, want %s", test.first, test.second, got, test.want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		one, two := &fakeSource{}, &fakeSource{}
		cc, c := start(t, several(discovery.Mechanism{Name: "x", Source: one}, discovery.Mechanism{Name: "x/child0", Source: two}))
		defer c.Close()
		_ = one.Update(answerOf(1))
		_ = two.Update(answerOf(2))
		if cc.last(); !strings.Contains(cc.config(), `"priorities":["x/child0","x'child0'2/child0"]`) {
			t.Errorf("the mechanisms x and x/child0: the channel got %s", cc.config())
		}
	})
}
