package priority

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

// Only the outermost policy with overflow refuses calls. It marks the state of those below.
func TestOnlyOutermostPolicyRefuses(t *testing.T) {
	const off, on = `"overflow": false,`, `"overflow": true,`
	outer, below := resolver.State{}, stateattr.SetBelowOverflow(resolver.State{})
	for name, test := range map[string]struct {
		overflow               string
		state                  resolver.State
		offers, refuses, marks bool
	}{
		"without overflow":                {off, outer, false, false, false},
		"outermost":                       {on, outer, true, true, true},
		"below one with overflow":         {on, below, true, false, true},
		"without, below one that has one": {off, below, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newStubbed(t, nil)
				update := func(overflow string) {
					if err := p.update(test.state, overflow, "a"); err != nil {
						t.Fatal(err)
					}
				}
				update(test.overflow)
				p.report("a", connectivity.Ready, nil)
				picker, offers := p.cc.State().Picker.(*offerPicker)
				if offers != test.offers || offers && (picker.shed != nil) != test.refuses {
					t.Errorf("the picker is %T %+v", p.cc.State().Picker, picker)
				}
				if marks := stateattr.IsBelowOverflow(p.Get("a").LastUpdate().ResolverState); marks != test.marks {
					t.Errorf("the child's state is marked: %v", marks)
				}
				update(off)
				if _, unwraps := p.cc.State().Picker.(unwrapper); unwraps != test.offers {
					t.Errorf("after overflow is turned off, the picker is %T", p.cc.State().Picker)
				}
				update(test.overflow)
				if _, offers := p.cc.State().Picker.(*offerPicker); offers != test.offers {
					t.Errorf("after the first configuration is back, the picker is %T", p.cc.State().Picker)
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
		`{}`:                "a",
		configText("", "b"): "b",
		inner:               "",
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newStubbed(t, nil)
			state := stateattr.SetConfig(resolver.State{}, parse(configText("", "a")))
			for range 2 {
				if err := p.updateConfig(state, text); err != nil && want != "" {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"a", "b"} {
				child := p.Get(name)
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
