package explain

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
)

// scriptedSource is a source whose reports are sent inside Start.
type scriptedSource func(*discovery.Receiver)

func (scriptedSource) Check(bool) error { return nil }

func (s scriptedSource) Start(r *discovery.Receiver) (discovery.Started, error) {
	s(r)
	return discovery.Started{}, nil
}

func init() {
	discovery.Register("outage", func(*discovery.Target) ([]discovery.Mechanism, error) {
		inner := scriptedSource(func(r *discovery.Receiver) { _ = r.Update(flat.Answer(flat.Endpoint{Address: "10.0.0.1:443"})) })
		return []discovery.Mechanism{{Source: scriptedSource(func(r *discovery.Receiver) {
			r.Mechanisms([]discovery.Mechanism{{Name: "inner", Source: inner}})
			r.Unconfirmed(errors.New("the server cannot be reached"), time.Now())
		})}}, nil
	})
}

// Without endpoints, the JSON still has a list of them. A note says that no calls can be made.
func TestTargetWithoutEndpoints(t *testing.T) {
	discovery.Register("emptied", func(*discovery.Target) ([]discovery.Mechanism, error) {
		return []discovery.Mechanism{{Source: scriptedSource(func(r *discovery.Receiver) { _ = r.Update(discovery.Answer{Empty: true}) })}}, nil
	})
	var text, json bytes.Buffer
	err := Run(t.Context(), Options{File: "emptied:///shop", Out: &text})
	if !errors.Is(err, ErrNoEndpoint) || !strings.Contains(text.String(), "note: there are no endpoints: no calls can be made\n") {
		t.Errorf("%v\n%s\nwant a note", err, &text)
	}
	if err := Run(t.Context(), Options{File: "emptied:///shop", Out: &json, JSON: true}); !errors.Is(err, ErrNoEndpoint) || !strings.Contains(json.String(), `"endpoints": []`) {
		t.Errorf("%v\n%s\nwant an empty list", err, &json)
	}
}

// If a source that has sent a list of mechanisms has a problem, the result must have a note.
func TestProblemOfListIsNoted(t *testing.T) {
	var out bytes.Buffer
	err := Run(t.Context(), Options{File: "outage:///shop", Out: &out})
	if err != nil || !strings.Contains(out.String(), "note: the server cannot be reached\n") || !strings.Contains(out.String(), "10.0.0.1:443") {
		t.Errorf("%v\n%s\nwant the endpoint, and a note about the server", err, &out)
	}
}

// A list needs no scheme, as in NewClient.
func TestListWithoutScheme(t *testing.T) {
	for target, want := range map[string]string{
		"127.0.0.1:443,127.0.0.2:443":               "1 127.0.0.2:443  /",
		"127.0.0.1:443,127.0.0.2:443?ramp=5s":       "1 127.0.0.2:443  /",
		"[::1%lo]:443,127.0.0.2:443":                "1 127.0.0.2:443  /",
		"127.0.0.1:443":                             "127.0.0.1:443",
		"unix:/run/a.sock,unix:/run/b.sock":         "unix:/run/b.sock",
		"dns:127.0.0.1:443,passthrough:127.0.0.2:1": "127.0.0.2:1",
	} {
		var out bytes.Buffer
		if err := Run(t.Context(), Options{File: target, Out: &out}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s\nwant %s", target, err, &out, want)
		}
	}
	if err := Run(t.Context(), Options{File: "127.0.0.1:443,127.0.0.2:99999", Out: new(bytes.Buffer)}); err == nil || !strings.Contains(err.Error(), "it has port 99999, which is not from 1 to 65535") {
		t.Errorf("a list with a mistake: %v", err)
	}
	if err := Run(t.Context(), Options{File: "none.yaml", Out: new(bytes.Buffer)}); err == nil || !strings.Contains(err.Error(), "none.yaml: no such file") {
		t.Errorf("a file is taken for a target: %v", err)
	}
}
