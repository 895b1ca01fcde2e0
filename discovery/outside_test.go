package discovery_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/resolver"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/lb/stateattr"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/lbtest"
)

// The stored answer of a channel must not be used for a target with another password.
func TestStoredAnswerDependsOnPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cc := &fakeSource{}, &channel{}
		b := newSourceBuilder(s)
		open := func(text string, then func()) string {
			r, err := b.Build(target(text), cc, resolver.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			then()
			r.Close()
			return cc.take()
		}
		down := func() { s.Fail(errors.New("down")) }
		open("x://user:hunter22@host/y", func() { _ = s.sendAddresses("10.0.0.1:1") })
		for text, want := range map[string]string{
			"x://user:hunter22@host/y": `state 10.0.0.1:1["child0" "/"]`,
			"x://user:hunter33@host/y": "error x: down",
			"x://hunter22@host/y":      "error x: down",
			"x://host/y":               "error x: down",
		} {
			if got := open(text, down); got != want {
				t.Errorf("%s: the channel saw %q, want %q", text, got, want)
			}
		}
	})
}

// Names and errors from outside the program must not add lines or control characters to the log or
// to errors. Secrets in the target must reach neither the metrics nor the channel.
func TestUntrustedTextIsEscaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hostileName = "shop\n2000/01/01 00:00:00 ERROR: [understudy] forged \x1b[31m"
		logged.Take()
		metrics, s, mechanism, cc := &lbtest.Recorder{}, &fakeSource{}, &fakeSource{}, &channel{}
		b := newBuilder([]discovery.Mechanism{{Name: "a", Source: s}, {Name: "b", Source: &fakeSource{}}})
		r, err := b.Build(target("failover:///x:%2F%2Fu:hunter22@h"), cc, resolver.BuildOptions{MetricsRecorder: metrics})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s.Mechanisms([]discovery.Mechanism{{Name: hostileName, Source: mechanism}})
		mechanism.Fail(errors.New("lookup " + hostileName + " of u:hunter22@h"))
		_ = mechanism.sendAddresses("10.0.0.1:1")
		mechanism.Fail(errors.New("stream\r\nof " + hostileName))
		_ = mechanism.Update(flat.Empty())
		output := logged.Take() + strings.ReplaceAll(cc.take(), "\n", "") + stateattr.ChannelOf(cc.lastState).Empty
		for labels := range metrics.Export() {
			output += labels
		}
		for _, bad := range []string{"\n2000/01/01 00:00:00 ERROR: [understudy] forged", "\x1b", "\r", "hunter22"} {
			if i := strings.Index(output, bad); i >= 0 {
				t.Errorf("%q is in the output: …%.300q", bad, output[max(0, i-100):])
			}
		}
		if want := `shop\n2000/01/01 00:00:00 ERROR: [understudy] forged \x1b[31m`; !strings.Contains(output, want) {
			t.Errorf("%q is missing from the output", want)
		}
	})
}
