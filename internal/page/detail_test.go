package page

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/testing/flat"
	"github.com/understudy-lb/understudy/internal/testing/scripttest"
)

func call(t *testing.T, cc *grpc.ClientConn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

func TestPageShowsReasonOfEjection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true, "b": true}, query: "?outlierDetection=true", failCalls: true}
		cc := openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(0, "us-east/a", "b", 1))
		for range 9 {
			call(t, cc)
		}
		settle()
		c, page := channel(t)
		var ejected *Child
		for _, e := range c.Tree.Children[0].Below.Children[0].Below.Children {
			if e.Ejected != "" {
				ejected = e
			}
		}
		if ejected == nil {
			t.Fatalf("no endpoint is shown as ejected:\n%s", page)
		}
		if ejected.Ejected != "ejected by failures in a row (UNAVAILABLE), for 29 s more" || ejected.EjectedBy != "consecutive_failures" || ejected.State != connectivity.TransientFailure.String() {
			t.Errorf("the endpoint is %+v", ejected)
		}
		if left := time.Until(*ejected.EjectedUntil); left != 29*time.Second {
			t.Errorf("it is ejected for %v more, want 29 s", left)
		}
		wantTexts(t, page, "ejected by failures in a row (UNAVAILABLE), for 29 s more", "1 ejected<")
		if strings.Contains(page, "because calls to it failed") {
			t.Errorf("the page says twice that an endpoint is ejected:\n%s", page)
		}
	})
}

func TestPageShowsScheduledPicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true, "b": true, "c": true}}
		cc := openChannel(t, s, newEndpoint(0, "us-east/a", "a", 3), newEndpoint(0, "us-east/a", "b", 1), newEndpoint(0, "us-east/b", "c", 1))
		calls := func(n int) {
			for range n {
				if err := call(t, cc); err != nil {
					t.Fatal(err)
				}
			}
			settle()
		}
		calls(80)
		s.Receiver.Update(flat.Answer(newEndpoint(0, "us-east/a", "a", 1), newEndpoint(0, "us-east/a", "b", 3), newEndpoint(0, "us-east/b", "c", 1)))
		settle()
		calls(10)
		c, page := channel(t)
		localities := c.Tree.Children[0].Below.Children
		var measured uint64
		for _, locality := range localities {
			var scheduled uint64
			for _, e := range locality.Below.Children {
				if e.Scheduled != e.Calls.Started {
					t.Errorf("the schedule gave %s %d calls, and it got %d", e.Name, e.Scheduled, e.Calls.Started)
				}
				scheduled += e.Scheduled
			}
			measured += scheduled
			if locality.Scheduled != scheduled || scheduled < 10 {
				t.Errorf("the schedule gave %s %d calls, and its endpoints %d", locality.Name, locality.Scheduled, scheduled)
			}
		}
		if measured != 90 {
			t.Errorf("%d of 90 calls are shown:\n%s", measured, page)
		}
		wantTexts(t, page, `<td class="n" data-label="Scheduled">`, "· 18 calls scheduled")
	})
}

func TestPageShowsVersionAndLastErrorOfSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true}}
		openChannel(t, s)
		answer := flat.Answer(newEndpoint(0, "us-east/a", "a", 1))
		answer.Version = "7"
		s.Receiver.Update(answer)
		time.Sleep(5 * time.Second)
		s.Receiver.Fail(errors.New("the registry is away"))
		time.Sleep(5 * time.Second)
		c, page := channel(t)
		if got := c.Sources[0]; got.Version != "7" || got.Error != "the registry is away" || got.LastError != got.Error || time.Since(*got.Answered) != 10*time.Second {
			t.Errorf("the source is %+v", got)
		}
		wantTexts(t, page, "10 s ago <small>version 7</small>", `<td data-label="What is wrong">the registry is away <small>for 5 s</small></td>`)
		answer.Version = "8"
		s.Receiver.Update(answer)
		time.Sleep(time.Second)
		c, page = channel(t)
		if got := c.Sources[0]; got.Version != "8" || got.Error != "" || got.LastError != "the registry is away" || time.Since(*got.LastErrorAt) != 6*time.Second {
			t.Errorf("the source is %+v", got)
		}
		wantTexts(t, page, "1 s ago <small>version 8</small>", "<small>nothing now; 6 s ago:</small> the registry is away")
	})
}

func TestPageShowsLastErrorOfEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"b": true}}
		openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1), newEndpoint(0, "us-east/a", "b", 1))
		s.restore("a")
		time.Sleep(30 * time.Second) // the channel reconnects
		settle()
		c, page := channel(t)
		a, b := c.Tree.Children[0].Below.Children[0].Below.Children[0], c.Tree.Children[0].Below.Children[0].Below.Children[1]
		if a.State != "READY" || a.Error != "connection refused by a:443" || a.ErrorAt == nil || !a.ErrorAt.Before(*a.Since) {
			t.Errorf("the endpoint is %+v", a)
		}
		if b.Error != "" || b.ErrorAt != nil {
			t.Errorf("the endpoint that never failed is %+v", b)
		}
		wantTexts(t, page, "last error, 3")
	})
}

func TestPageShowsIntermediatePolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{reachable: map[string]bool{"a": true}}
		openChannel(t, s, newEndpoint(0, "us-east/a", "a", 1))
		time.Sleep(10 * time.Second)
		c, page := channel(t)
		layers := c.Tree.Children[0].Below.Through
		if len(layers) != 2 || layers[0].Policy != "outlier_detection" || layers[1].Policy != "drop" || layers[1].State != "READY" || layers[1].Since == nil {
			t.Errorf("the policies in between are %+v", layers)
		}
		wantTexts(t, page, "outlier_detection READY for 11 s · drop READY for 11 s")
	})
}

func TestPageShowsWhatSourceWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeSource{}
		openChannel(t, s)
		fresh := &scripttest.Source{}
		scripttest.Open(t, "fresh", []discovery.Mechanism{{Source: fresh}}, nil)
		fresh.Receiver.Trying("dialling <the registry>")
		c, page := channelTo(t, "fresh")
		if got := c.Sources[0]; got.State != "no answer yet" || got.Trying != "dialling <the registry>" {
			t.Errorf("the source is %+v", got)
		}
		wantTexts(t, page, `<td data-label="State">no answer yet: dialling &lt;the registry&gt;</td>`)
		fresh.Receiver.Fail(errors.New("no registry"))
		fresh.Receiver.Trying("dialling again")
		if c, _ := channelTo(t, "fresh"); c.Sources[0].Trying != "" {
			t.Errorf("after a failure the source is %+v", c.Sources[0])
		}
	})
}
