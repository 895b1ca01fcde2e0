package kubernetes

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/understudy-lb/understudy/discovery"
)

// pipe answers the first request with what the test writes, and holds the others.
type pipe struct{ body io.ReadCloser }

func (p *pipe) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: p.body}, nil
}

func TestDeletedSliceCountsForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		var last, failure atomic.Value
		r := new(discovery.Receiver).With(discovery.Hooks{
			Update: func(a discovery.Answer) error { last.Store(flat(a)); return nil },
			Fail:   func(err error) { failure.Store(err.Error()) },
		})
		s := source{query{namespace: "shop", services: "web"}, server{host: "http://x", transport: &pipe{reader}}}
		started, err := s.Start(r)
		if err != nil {
			t.Fatal(err)
		}
		const object = `"object":{"metadata":{"name":"a"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"port":80}]}}`
		_, _ = io.WriteString(writer, `{"type":"ADDED",`+object)
		_, _ = io.WriteString(writer, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		_, _ = io.WriteString(writer, `{"type":"DELETED",`+object)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if last.Load() != "0/10.0.0.1:80=healthy" || failure.Load() != nil {
			t.Errorf("after 9 s the answer is %q, and the failure %v", last.Load(), failure.Load())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if failure.Load() == nil {
			t.Error("after 11 s the Service without slices is no failure")
		}
		started.Close()
		_ = writer.Close()
	})
}
