package priority

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// Only the outermost policy with overflow refuses calls. It marks the state of those below.
func TestOnlyOutermostPolicyRefuses(t *testing.T) {
	const config = `, "priorities": ["a"], "children": {"a": {"config": [{"nested_stub": {"id": "a"}}]}}}`
	outer := resolver.State{}
	for name, test := range map[string]struct {
		config                 string
		state                  resolver.State
		offers, refuses, marks bool
	}{
		"without overflow":                {`{"overflow": false` + config, outer, false, false, false},
		"outermost":                       {`{"overflow": true` + config, outer, true, true, true},
		"below one with overflow":         {`{"overflow": true` + config, stateattr.SetBelowOverflow(outer), true, false, true},
		"without, below one that has one": {`{"overflow": false` + config, stateattr.SetBelowOverflow(outer), false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stubs := &lbtest.StubBuilder{PolicyName: "nested_stub"}
				balancer.Register(stubs)
				cc, builder := &lbtest.ClientConn{}, balancer.Get(Name)
				policy := builder.Build(cc, balancer.BuildOptions{})
				defer policy.Close()
				update := func(text string) {
					parsed, err := builder.(balancer.ConfigParser).ParseConfig([]byte(text))
					if err != nil {
						t.Fatal(err)
					}
					if err := policy.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: parsed, ResolverState: test.state}); err != nil {
						t.Fatal(err)
					}
				}
				update(test.config)
				child := stubs.Get("a")
				child.Report(connectivity.Ready, nil)
				synctest.Wait()
				picker, offers := cc.State().Picker.(*offerPicker)
				if offers != test.offers || offers && (picker.shed != nil) != test.refuses {
					t.Errorf("the picker is %T %+v", cc.State().Picker, picker)
				}
				if marks := stateattr.IsBelowOverflow(child.LastUpdate().ResolverState); marks != test.marks {
					t.Errorf("the child's state is marked: %v", marks)
				}
				update(`{"overflow": false` + config)
				if _, unwraps := cc.State().Picker.(unwrapper); unwraps != test.offers {
					t.Errorf("after overflow is turned off, the picker is %T", cc.State().Picker)
				}
				update(test.config)
				if _, offers := cc.State().Picker.(*offerPicker); offers != test.offers {
					t.Errorf("after the first configuration is back, the picker is %T", cc.State().Picker)
				}
			})
		})
	}
}

// A configuration in the state takes effect if the service config has no children. A service config
// with children, such as a program's own that wraps our resolver, takes precedence. A policy below
// does not get the configuration of the one above.
func TestConfigInState(t *testing.T) {
	const inner = `{"children": {"inner": {"config": [{"understudy_priority": {}}]}}, "priorities": ["inner"]}`
	for text, want := range map[string]string{
		`{}`:                         "a",
		children("stub_update", "b"): "b",
		inner:                        "",
	} {
		synctest.Test(t, func(t *testing.T) {
			cc := &lbtest.ClientConn{}
			stubs, p, _ := stubs(cc, nil)
			defer p.Close()
			state := stateattr.SetConfig(resolver.State{}, parse(children("stub_update", "a")))
			for range 2 {
				if err := p.UpdateClientConnState(balancer.ClientConnState{BalancerConfig: parse(text), ResolverState: state}); err != nil && want != "" {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"a", "b"} {
				child := stubs.Get(name)
				if (child != nil) != (name == want) {
					t.Errorf("%s: the policy has child %s: %v", text, name, child != nil)
				}
				if child == nil {
					continue
				}
				if config, _ := stateattr.TakeConfig(child.LastUpdate().ResolverState); config != nil {
					t.Errorf("%s: the child gets the configuration %v of its parent", text, config)
				}
			}
		})
	}
}
