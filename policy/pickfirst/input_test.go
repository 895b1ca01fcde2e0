package pickfirst

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/balancer"
	grpcpickfirst "google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	core "github.com/understudy-lb/understudy/internal/core/pickfirst"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
)

func TestParseConfig(t *testing.T) {
	parser := balancer.Get(Name).(balancer.ConfigParser)
	for _, c := range []struct{ in, want, wantErr string }{
		{in: `{}`, want: `{"shuffleAddressList":false}`},
		{in: `{"shuffleAddressList": true, "later": [1]}`, want: `{"shuffleAddressList":true}`},
		{in: `{"shuffleAddressList": null}`, want: `{"shuffleAddressList":false}`},
		{in: `{"shuffleAddressList": "yes"}`, wantErr: `pick_first: shuffleAddressList: "yes" given, want true or false`},
		{in: `{"shuffleAddressList": 1}`, wantErr: `pick_first: shuffleAddressList: 1 given, want true or false`},
		{in: `[]`, wantErr: `pick_first: [] given, want a JSON object`},
		{in: `null`, wantErr: `pick_first: null given, want a JSON object`},
		{in: "[\n1\n]", wantErr: `pick_first: [ 1 ] given, want a JSON object`},
		{in: ``, wantErr: `pick_first: nothing given, want a JSON object`},
	} {
		got, err := parser.ParseConfig(json.RawMessage(c.in))
		if c.wantErr != "" {
			if err == nil || err.Error() != c.wantErr {
				t.Errorf("%s: error %v, want %s", c.in, err, c.wantErr)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		// grpc-go's cds policy does the same: it marshals a parsed configuration and parses it again.
		again, err := json.Marshal(got)
		if err != nil || string(again) != c.want {
			t.Errorf("%s is marshalled as %s, %v; want %s", c.in, again, err, c.want)
		}
	}
	if _, err := parser.ParseConfig(json.RawMessage(`"` + strings.Repeat("x", 10000) + `"`)); len(err.Error()) > 250 {
		t.Errorf("the error has %d characters, want at most 250", len(err.Error()))
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, seed := range []string{`{}`, `{"shuffleAddressList": true}`, `{"shuffleAddressList": "\n"}`, `[]`, `null`, ``} {
		f.Add([]byte(seed))
	}
	parser := balancer.Get(Name).(balancer.ConfigParser)
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := parser.ParseConfig(raw)
		if err != nil {
			if len(err.Error()) > 500 || strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("the error is %q", err)
			}
			return
		}
		again, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		second, err := parser.ParseConfig(again)
		if err != nil || !reflect.DeepEqual(config, second) {
			t.Errorf("%s becomes %v, %v; want %v", again, second, err, config)
		}
	})
}

func TestEmptyListIsError(t *testing.T) {
	for name, s := range map[string]resolver.State{
		"nothing":                     {},
		"endpoints without addresses": {Endpoints: make([]resolver.Endpoint, 2)},
	} {
		cc, p := build(t)
		err := p.UpdateClientConnState(balancer.ClientConnState{ResolverState: s})
		if !errors.Is(err, balancer.ErrBadResolverState) {
			t.Errorf("%s: error %v, want ErrBadResolverState", name, err)
		}
		wantState(t, cc, connectivity.TransientFailure, "fail: no addresses: the resolver returned none, or none with a path to this policy")
	}
}

// A connection fails with a status error. The picker must return a plain error, because a status
// error would also end wait-for-ready calls.
func TestFailingPickersReturnPlainErrors(t *testing.T) {
	cc, p := build(t)
	update(t, p, stateattr.EnableHealthListener(endpoints("a")))
	bad := status.Error(codes.PermissionDenied, "no")
	check := func(what string) {
		t.Helper()
		_, err := cc.State().Picker.Pick(balancer.PickInfo{})
		if _, isStatus := status.FromError(err); err == nil || isStatus {
			t.Errorf("%s: a pick returns %v, want an error without a status", what, err)
		}
	}
	cc.SubConn("a").Report(connectivity.TransientFailure, bad)
	check("failed pass")
	p.ResolverError(bad)
	check("resolver error")
	synctest.Test(t, func(t *testing.T) {
		cc2, p2 := build(t)
		cc = cc2
		update(t, p2, stateattr.EnableHealthListener(endpoints("a")))
		cc.SubConn("a").Report(connectivity.Ready, nil)
		cc.SubConn("a").ReportHealth(connectivity.TransientFailure, bad)
		synctest.Wait()
		check("health")
	})
}

// Attributes.Equal panics if an attribute cannot be compared. The policy must recover from this.
func TestIncomparableAttribute(t *testing.T) {
	type key struct{}
	s := endpoints("a")
	s.Attributes = s.Attributes.WithValue(key{}, []string{"x"})
	if healthEnabled(s) {
		t.Error("the state counts as marked")
	}
	if !healthEnabled(stateattr.EnableHealthListener(s)) {
		t.Error("stateattr's mark is not detected")
	}
}

func TestHealthListenerAttributes(t *testing.T) {
	type key struct{}
	other := endpoints("a")
	other.Attributes = other.Attributes.WithValue(key{}, 1)
	for _, c := range []struct {
		state resolver.State
		want  bool
	}{
		{endpoints("a"), false}, {other, false},
		{stateattr.EnableHealthListener(endpoints("a")), true}, {stateattr.EnableHealthListener(other), true},
		{grpcpickfirst.EnableHealthListener(endpoints("a")), true}, {grpcpickfirst.EnableHealthListener(other), true},
	} {
		for range 2 {
			if got := healthEnabled(c.state); got != c.want {
				t.Errorf("%v: %t, want %t", c.state.Attributes, got, c.want)
			}
		}
	}
}

func TestManyAddressesInOneEndpoint(t *testing.T) {
	for _, families := range [][]string{{"10.0.%d.%d:80"}, {"10.0.%d.%d:80", "[2001:db8::%x:%x]:80", "host-%d-%d"}} {
		const n = 10_000
		var e resolver.Endpoint
		for i := range n {
			a := fmt.Sprintf(families[i%len(families)], i/256, i%256)
			e.Addresses = append(e.Addresses, resolver.Address{Addr: a})
		}
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder(balancer.Get(Name), stateattr.EnableHealthListener)
			r.policy.UpdateClientConnState(balancer.ClientConnState{ResolverState: resolver.State{Endpoints: []resolver.Endpoint{e}}})
			tried := 0
			for n := len(r.log); n > 0; n = len(r.log) {
				address, ok := strings.CutPrefix(r.log[n-1], "connect ")
				if !ok {
					break
				}
				tried++
				r.log = r.log[:0]
				r.Report(address, core.TransientFailure, errors.New("refused"))
			}
			want := []string{"publish TRANSIENT_FAILURE: all 10000 addresses failed, the last with: refused", "resolve"}
			if tried != n || !slices.Equal(r.log, want) {
				t.Errorf("tried %d addresses, then %q", tried, r.log)
			}
			r.policy.Close()
		})
	}
}
