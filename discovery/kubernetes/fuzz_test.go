package kubernetes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/understudy-lb/understudy/discovery"
	"github.com/understudy-lb/understudy/internal/channel/topology"
	with "github.com/understudy-lb/understudy/internal/testing/given"
)

func FuzzTarget(f *testing.F) {
	for _, seed := range []string{
		"kubernetes:///web.shop:grpc", "kubernetes:///web.shop.svc.cluster.local:80", "kubernetes://shop/a,b:1?terminating=never&addressType=IPv6",
		"k8s:///a.b,a.c", "kubernetes:web", "kubernetes:///A", "kubernetes:///a.b.c", "kubernetes:///a:0", "kubernetes:///a?addressType=x", "kubernetes://a:1/?prefer=none",
	} {
		f.Add(seed)
	}
	b := with.Builder(Scheme, with.Sources(WithTransport("https://10.0.0.1:6443", &fakeAPIServer{})))
	f.Fuzz(func(t *testing.T, text string) { with.CheckTarget(t, b, text) })
}

func checkLine(t *testing.T, what, text string) {
	t.Helper()
	if strings.ContainsAny(text, "\n\r\x00\x1b") || len(text) > 2000 {
		t.Errorf("%s is not a short line: %.3000q", what, text)
	}
}

func checkKnown(t *testing.T, k *knownSlices) {
	t.Helper()
	n := 0
	for name, sl := range k.slices {
		if n += len(sl.endpoints); name == "" || len(sl.endpoints) > maxEndpoints || len(sl.ports) > maxPorts || sl.hasLongText() {
			t.Errorf("slice %q with %d endpoints and %d ports is in use", name, len(sl.endpoints), len(sl.ports))
		}
	}
	if n != k.endpoints {
		t.Errorf("%d endpoints are counted as %d", n, k.endpoints)
	}
	for _, q := range []query{{services: "web"}, {services: "api,web", port: "grpc", neverTerminating: true}, {services: "web", port: "80", family: "IPv6"}} {
		a, err := answer(q, k.snapshot())
		if err != nil {
			checkLine(t, "an error", err.Error())
			continue
		}
		if _, err := topology.Check(&a, nil); err != nil {
			t.Errorf("the answer is invalid: %v", err)
		}
		checkLine(t, "the reason", a.Why)
		for _, note := range a.Notes {
			checkLine(t, "a note", note)
		}
	}
}

// FuzzWatch reads a watch that consists of arbitrary bytes. The watch must stay within its limits
// and describe each problem in one line. A slice that cannot be parsed must keep its last content.
func FuzzWatch(f *testing.F) {
	for _, seed := range []string{
		sliceEvent("ADDED", "a", "10.0.0.1") + bookmark("7", true) + sliceEvent("MODIFIED", "a", "10.0.0.2,10.0.0.3") + sliceEvent("DELETED", "a", "") + bookmark("9", false),
		sliceEvent("MODIFIED", "b", `{"addresses":["::1"],"conditions":{"ready":false,"serving":true,"terminating":true},"zone":"z","nodeName":"n","hints":{"forZones":[{"name":"z"}]},"targetRef":{"uid":"u"}}`),
		strings.Replace(sliceEvent("MODIFIED", "known", "10.0.0.9"), `"endpoints":[`, `"endpoints":7,"x":[`, 1) + `{"type":"NEW","object":{}}` + `{"type":7}`,
		`{"type":"ERROR","object":{"code":410,"message":"too old\n","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}}`,
		`{"type":"ADDED","object":[1]}` + "\n" + `{"type":"ADDED","object":{"metadata":{"name":"a","labels":{"understudy.dev/priority":"x","understudy.dev/weight":"-1"}}}}` + "\n{",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := &watch{known: newKnownSlices(), receiver: new(discovery.Receiver)}
		stream := newStream(strings.NewReader(sliceEvent("ADDED", "known", "10.0.0.1") + string(body)))
		for n := 0; ; n++ {
			e := new(event)
			e.problem, e.err = stream.next(e)
			name := e.Object.Metadata.Name
			before := w.known.slices[name]
			err := w.handleEvent(t.Context(), e)
			if e.problem != nil {
				checkLine(t, "a problem", e.problem.Error())
				if e.Type != "DELETED" && before != nil && w.known.slices[name] == nil {
					t.Errorf("slice %q does not parse, %v, and is no longer in use", name, e.problem)
				}
			}
			if len(w.version) > maxText || n > len(body)+1 {
				t.Fatalf("after %d events, the version has %d bytes", n, len(w.version))
			}
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					checkLine(t, "an error", err.Error())
				}
				break
			}
		}
		checkKnown(t, w.known)
		w.known.expire(time.Now().Add(time.Hour))
		if len(w.known.deleted.slices) > 0 {
			t.Error("deleted slices do not expire")
		}
	})
}

// FuzzList does the same as FuzzWatch for a list.
func FuzzList(f *testing.F) {
	object := func(event string) string {
		return strings.TrimSuffix(event[strings.Index(event, `"object":`)+9:], "}\n")
	}
	for _, seed := range []string{
		`{"items":[` + object(sliceEvent("", "a", "10.0.0.1")) + `,{"metadata":7}],"x":{"y":[1]},"metadata":{"resourceVersion":"5"}}`,
		`{"metadata":{"resourceVersion":"5"},"items":null}`, `{"items":{}}`, `{"metadata":{}}`, `[]`, ``, `{"items":[{}`, `{"metadata":{"resourceVersion":7}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		all := newCollection()
		version, err := readList(bytes.NewReader(body), func(sl *slice, problem error) { all.put(sl, problem, nil) })
		if (err == nil) != (version != "") {
			t.Errorf("version %q, error %v", version, err)
		}
		if err != nil {
			checkLine(t, "an error", err.Error())
		}
		k := newKnownSlices()
		k.replace(all, time.Now())
		checkKnown(t, k)
	})
}

// FuzzStatus checks that a response with a code other than 200 causes an error that contains the
// code and is one short line, whatever its body is.
func FuzzStatus(f *testing.F) {
	f.Add(410, "", []byte(`{"message":"too old","code":200,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`))
	f.Add(503, "5", []byte("<html>\x1b[2J"))
	f.Add(429, "-1", []byte(`{"message":"`+strings.Repeat("é", 1000)+`"}`))
	f.Add(404, "99999999999999999999", []byte(`{"details":{"causes":[1,2,3]}}`))
	f.Fuzz(func(t *testing.T, code int, after string, body []byte) {
		if code == http.StatusOK {
			return
		}
		h := &apiClient{server: server{host: "x", transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {after}}, Body: io.NopCloser(bytes.NewReader(body))}, nil
		})}}
		_, err := h.get(t.Context(), "/", nil)
		s, ok := errors.AsType[*status](err)
		if !ok || s.Code != code || s.retryAfter < 0 || s.retryAfter > 2*time.Minute {
			t.Fatalf("error %v, want the code %d", err, code)
		}
		checkLine(t, "the error", err.Error())
		w := &watch{client: h, known: newKnownSlices()}
		delay, say := w.nextAttempt(err, 0, false)
		if delay < 0 || delay > 3*time.Minute {
			t.Errorf("%d: the next request is after %v", code, delay)
		}
		if say != nil {
			checkLine(t, "what is said", fmt.Sprint(say))
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzService checks that the reason for missing slices is one short line, whatever the API server
// returns for the Service.
func FuzzService(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"Service","spec":{"type":"ExternalName","externalName":"a.test\n"}}`, `{"kind":"Service","spec":{"selector":{"a":"b"}}}`,
		`{"kind":"Service"}`, `{"kind":"Status"}`, `[]`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h := &apiClient{server: server{host: "x", transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
		})}}
		checkLine(t, "the reason", h.reason(t.Context(), "shop", "web"))
	})
}
