package kubernetes

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// reply is the server's response to one request. Its body ends after the time duration. If duration
// is 0 and the code is 200, the body does not end.
type reply struct {
	code       int
	retryAfter string
	body       string
	duration   time.Duration
}

// If the server replies without slices, the known slices must stay in use. The kind of reply must
// determine the next request and the pause before it.
func TestRepliesWithoutSlices(t *testing.T) {
	const all = `{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"3"},"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}],"ports":[{"port":80}]}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	initialReply, openReply := reply{200, "", all, time.Minute}, reply{200, "", all, 0}
	const goneStatus = `{"kind":"Status","code":410,"message":"too old resource version"}`
	for what, test := range map[string]struct {
		replies  []reply
		want     string
		minPause time.Duration
	}{
		"gone, as a status":            {[]reply{initialReply, {410, "", goneStatus, 0}, openReply}, "all 7 all", 0},
		"gone, as an event":            {[]reply{initialReply, {200, "", `{"type":"ERROR","object":` + goneStatus + `}`, time.Second}, openReply}, "all 7 all", 0},
		"too large":                    {[]reply{initialReply, {504, "", `{"code":504,"message":"Too large resource version: 7, current: 5"}`, 0}, openReply}, "all 7 all", 0},
		"too large, by its cause":      {[]reply{initialReply, {504, "", `{"code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`, 0}, openReply}, "all 7 all", 0},
		"restored, then silent":        {[]reply{initialReply, {200, "", "", 5 * time.Minute}, openReply}, "all 7 all", 0},
		"ended early":                  {[]reply{initialReply, {200, "", "", 5 * time.Second}, openReply}, "all 7 7", 0},
		"an internal error":            {[]reply{initialReply, {500, "", "boom", 0}, openReply}, "all 7 7", time.Second},
		"a redirect":                   {[]reply{initialReply, {302, "", "", 0}, openReply}, "all 7 7", time.Second},
		"busy":                         {[]reply{initialReply, {429, "7", "", 0}, openReply}, "all 7 7", 7 * time.Second},
		"busy for a day":               {[]reply{initialReply, {429, "86400", "", 0}, openReply}, "all 7 7", 2 * time.Minute},
		"busy at the beginning":        {[]reply{{429, "7", "", 0}, openReply}, "all all", 7 * time.Second},
		"busy, with a bad Retry-After": {[]reply{{429, "soon", "", 0}, openReply}, "all all", time.Second},
		"old, without initial events":  {[]reply{{422, "", "", 0}, {200, "", `{"metadata":{"resourceVersion":"5"},"items":[]}`, time.Millisecond}, openReply}, "all list 5", 0},
		"unauthorized":                 {[]reply{initialReply, {401, "", "", 0}, openReply}, "all 7 7", time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeAPIServer{retryAfter: func(n int) string { return test.replies[min(n, len(test.replies)-1)].retryAfter }}
				s.serve = func(n int, _ url.Values, w io.Writer, done <-chan struct{}) int {
					next := test.replies[min(n, len(test.replies)-1)]
					w.(*firstWrite).begin(next.code)
					writeAll(w, next.body)
					if next.code == http.StatusOK && next.duration == 0 {
						return waitUntilDone(done)
					}
					time.Sleep(next.duration)
					return 0
				}
				l, stop := startSource(t, s, query{})
				for _, reply := range test.replies {
					time.Sleep(reply.duration)
				}
				time.Sleep(4 * time.Minute) // a watch without events is canceled after 5 to 10 minutes
				reports := l.takeReports()
				got, all := s.requests()
				stop()
				if got != test.want {
					t.Fatalf("the requests are %s, want %s", got, test.want)
				}
				n := len(all) - 1
				if after := all[n].at.Sub(all[n-1].at); after < test.minPause || after > test.minPause+test.replies[n-1].duration+3*time.Second {
					t.Errorf("the last request came %v after the previous one, want %v plus at most a backoff", after, test.minPause)
				}
				if strings.HasPrefix(test.want, "all 7") && (!strings.HasPrefix(reports, "0s update 0/10.0.0.1:80=healthy") || strings.Contains(reports, "fail ")) {
					t.Errorf("the receiver got %q, want the known endpoints and no failure", reports)
				}
			})
		})
	}
}
