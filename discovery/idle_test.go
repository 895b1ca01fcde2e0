package discovery_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/config/options"
	"github.com/understudy-lb/understudy/internal/testing/settle"
)

// The last answer of an idle channel must be stored for an hour after the source last confirmed it.
// If the source fails when the channel leaves idle mode, the channel must use the stored answer.
func TestLastGoodAnswerAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		b := newSourceBuilder(s)
		plain := discovery.Answer{Resolved: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: "10.0.0.9:1"}}}}}
		use := func(b options.Builder, target resolver.Target, then func()) string {
			cc := &channel{}
			r, err := b.Build(target, cc, resolver.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			then()
			r.Close()
			return cc.take()
		}
		fail := func() { s.Fail(errors.New("down")) }
		defaultTarget := target("x:///y")

		const logLine = "x: down; the endpoints that were confirmed 59m0s ago are used"
		before := logged.Count(logLine)
		use(b, defaultTarget, func() { s.sendAddresses("10.0.0.1:1"); <-time.After(24 * time.Hour) })
		<-time.After(59 * time.Minute)
		if got, want := use(b, defaultTarget, fail), `state 10.0.0.1:1["child0" "/"]`; got != want {
			t.Errorf("after 59 minutes: channel saw %q, want %q", got, want)
		}
		if logged.Count(logLine) != before+1 {
			t.Error("their age is not logged")
		}
		if got, want := use(b, defaultTarget, func() { s.sendAddresses("10.0.0.2:1") }), `state 10.0.0.2:1["child0" "/"]`; got != want {
			t.Errorf("a source that works: channel saw %q, want its answer alone: %q", got, want)
		}
		// Using a stored answer must not confirm it.
		<-time.After(59 * time.Minute)
		use(b, defaultTarget, fail)
		<-time.After(2 * time.Minute)
		if got, want := use(b, defaultTarget, fail), "error x: down"; got != want {
			t.Errorf("after 61 minutes: channel saw %q, want %q", got, want)
		}
		use(b, defaultTarget, func() { s.Update(plain) })
		for _, other := range []string{use(b, target("x:///z"), fail), use(newSourceBuilder(s), defaultTarget, fail)} {
			if other != "error x: down" {
				t.Errorf("another channel saw %q", other)
			}
		}
		if got, want := use(b, defaultTarget, fail), `state 10.0.0.9:1["endpoints" "/"]`; got != want {
			t.Errorf("plain endpoints: channel saw %q, want %q", got, want)
		}
	})
}

// confirmingSource is a source that implements Started.Confirmed.
type confirmingSource struct {
	fakeSource
	confirmed time.Time
}

func (*confirmingSource) Check(bool) error { return nil }

func (l *confirmingSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	l.Receiver = settle.Receiver(r)
	return discovery.Started{Confirmed: func() time.Time { return l.confirmed }}, nil
}

func TestConfirmedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &confirmingSource{}
		b, cc := newSourceBuilder(s), &channel{}
		r := build(t, b, cc)
		s.sendAddresses("10.0.0.1:1")
		s.confirmed = time.Now().Add(50 * time.Minute)
		<-time.After(80 * time.Minute)
		r.Close()
		cc.take()
		for _, want := range []string{`state 10.0.0.1:1["child0" "/"]`, "error x: down"} {
			<-time.After(20 * time.Minute)
			r := build(t, b, cc)
			s.Fail(errors.New("down"))
			r.Close()
			if got := cc.take(); got != want {
				t.Errorf("channel saw %q, want %q", got, want)
			}
		}
	})
}

// Channels with the same target and equal options must share a stored answer. Channels with other
// options must not.
func TestEqualOptionsShareLastGoodAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		discovery.Register("equal", func(*discovery.Target) ([]discovery.Mechanism, error) { return []discovery.Mechanism{{Source: s}}, nil })
		open := func(given options.Program) (*channel, resolver.Resolver) {
			cc := &channel{}
			r, err := options.BuilderFor("equal", given).Build(target("equal:///y"), cc, resolver.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return cc, r
		}
		_, r := open(options.Program{})
		s.sendAddresses("10.0.0.1:1")
		r.Close()
		for given, want := range map[*options.Program]string{
			{}: `state 10.0.0.1:1["child0" "/"]`,
			{Settings: options.Settings{WarmStandby: 1}}:               `state 10.0.0.1:1["child0" "/"]`,
			{Authority: "other.test"}:                                  "error equal: down",
			{Sources: []any{discovery.OwnOption(func(*testing.T) {})}}: "error equal: down",
		} {
			cc, r := open(*given)
			s.Fail(errors.New("down"))
			if got := cc.take(); got != want {
				t.Errorf("with %+v the channel saw %q, want %q", given, got, want)
			}
			r.Close()
		}
	})
}
