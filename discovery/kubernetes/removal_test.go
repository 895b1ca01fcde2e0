package kubernetes

import (
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestReasonForMissingSlices(t *testing.T) {
	for want, services := range map[string]map[string]string{
		defaultReason:             nil,
		"there is no Service web": {},
		"has the type ExternalName, and no endpoints: it is an alias of db.example.com; want a target for that, such as failover:///db.example.com": {"web": `{"kind":"Service","spec":{"type":"ExternalName","externalName":"db.example.com"}}`},
		"Service web has no selector":                     {"web": `{"kind":"Service","spec":{"type":"ClusterIP"}}`},
		"Service web has no EndpointSlices yet":           {"web": `{"kind":"Service","spec":{"selector":{"app":"web"}}}`},
		"or it has the type ExternalName, or no selector": {"web": `[` + strings.Repeat("[", 1000)},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &fakeAPIServer{services: services, serve: func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
				writeAll(w, bookmark("7", true))
				return waitUntilDone(done)
			}}
			l, stop := startSource(t, s, query{})
			time.Sleep(3 * time.Second)
			if got := l.takeReports(); !strings.Contains(got, "fail no EndpointSlice of web.shop: ") || !strings.Contains(got, want) {
				t.Errorf("the receiver got %q, want %q", got, want)
			}
			stop()
		})
	}
}
