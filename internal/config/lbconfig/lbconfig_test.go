package lbconfig

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/serviceconfig"

	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

func init() {
	balancer.Register(&lbtest.StubBuilder{PolicyName: "lbconfig_stub"})
	balancer.Register(dropStub{&lbtest.StubBuilder{PolicyName: "lbconfig_drop"}})
}

type dropStub struct{ *lbtest.StubBuilder }

func (dropStub) ParseConfig(raw json.RawMessage) (serviceconfig.LoadBalancingConfig, error) {
	c := &Drop{}
	return c, Parse("drop", raw, c)
}

func TestPolicyUsesFirstRegistered(t *testing.T) {
	var p Policy
	err := json.Unmarshal([]byte(`[{"not_there":{}},{"lbconfig_stub":{"id":"a"}},{"lbconfig_stub":{"id":"b"}}]`), &p)
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := p.Config.(*lbtest.StubConfig); !ok || c.ID != "a" || p.Name() != "lbconfig_stub" {
		t.Errorf("took %s with %+v, want lbconfig_stub with id a", p.Name(), p.Config)
	}
}

func TestPolicyOfNameIsMarshaled(t *testing.T) {
	for want, p := range map[string]Policy{
		`[]`:                                  {},
		`[{"p":{}}]`:                          Named("p", nil),
		`[{"p":{"shuffleAddressList":true}}]`: Named("p", &PickFirst{ShuffleAddressList: true}),
	} {
		if got, err := json.Marshal(p); err != nil || string(got) != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                                  "{} given, want a list of policies",
		`[]`:                                  "names no policy",
		`[{"a":{},"b":{}}]`:                   "entry 0 names 2 policies",
		`[{"a":{}},{"b":{}}]`:                 `none of the policies is registered: "a", "b"`,
		`[{"lbconfig_stub":{"reject":true}}]`: "lbconfig_stub: stub",
	} {
		if err := json.Unmarshal([]byte(in), &Policy{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", in, err, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{`"10s"`: 10 * time.Second, `"0.25s"`: 250 * time.Millisecond, `"15m"`: 15 * time.Minute, `"0s"`: 0, `".5s"`: 500 * time.Millisecond,
		// Other implementations write "never" as protobuf's largest Duration, which does not fit into a
		// time.Duration.
		`"315576000000s"`: math.MaxInt64, `"9223372036.854775807s"`: math.MaxInt64, `"9223372037s"`: math.MaxInt64} {
		var d Duration
		if err := json.Unmarshal([]byte(in), &d); err != nil || time.Duration(d) != want {
			t.Errorf("%s = %v, %v; want %v", in, time.Duration(d), err, want)
		}
		data, err := json.Marshal(d)
		var again Duration
		if err != nil || json.Unmarshal(data, &again) != nil || again != d {
			t.Errorf("%s does not survive as %s", in, data)
		}
	}
	for _, in := range []string{`10`, `"-1s"`, `"ten"`, `"10"`, `null`, `""`, `"315576000001s"`, `"-315576000000s"`, `"9223372037h"`} {
		var d Duration
		if err := json.Unmarshal([]byte(in), &d); err == nil {
			t.Errorf("%s was accepted as %v", in, time.Duration(d))
		}
	}
}
