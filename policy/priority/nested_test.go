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
