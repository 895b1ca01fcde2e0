package kubernetes

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// endlessBody is a body that does not end. Reading more than limit bytes fails, so that a missing
// limit is detected before the test runs out of memory.
type endlessBody struct {
	prefix, repeated string
	limit            int
	readCount        int
	isOverLimit      bool
}

func (e *endlessBody) Read(p []byte) (int, error) {
	if e.readCount > e.limit {
		e.isOverLimit = true
		return 0, errors.New("too much was read")
	}
	text := e.repeated
	if e.readCount < len(e.prefix) {
		text = e.prefix[e.readCount:]
	} else if offset := (e.readCount - len(e.prefix)) % len(e.repeated); offset > 0 {
		text = e.repeated[offset:]
	}
	n := copy(p, text)
	e.readCount += n
	return n, nil
}

func (e *endlessBody) Close() error { return nil }

// RoundTrip returns a response with the body e. The status is 200 for a Service, and 500 for
// slices.
func (e *endlessBody) RoundTrip(r *http.Request) (*http.Response, error) {
	code := http.StatusInternalServerError
	if strings.HasPrefix(r.URL.Path, "/api/v1/") {
		code = http.StatusOK
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: e}, nil
}

// The client must stop reading a body that does not end. It may exceed its limit by one buffer,
// because decoders read ahead.
func TestEndlessBodies(t *testing.T) {
	t.Parallel()
	const buffer = 1 << 20
	for about, test := range map[string]struct {
		body *endlessBody
		read func(t *testing.T, e *endlessBody) error
	}{
		"a list": {
			&endlessBody{prefix: `{"items":[{}`, repeated: `,{"x":"` + strings.Repeat("a", 4<<20) + `"}`, limit: maxList + buffer},
			func(_ *testing.T, e *endlessBody) error {
				_, err := readList(e, func(*slice, error) {})
				return err
			},
		},
		"an error": {
			&endlessBody{repeated: "no ", limit: maxStatus + buffer},
			func(t *testing.T, e *endlessBody) error {
				_, err := (&apiClient{server: server{host: "http://x", transport: e}}).get(t.Context(), "/", nil)
				return err
			},
		},
		"a Service": {
			&endlessBody{prefix: `{"kind":"`, repeated: "Service", limit: maxService + buffer},
			func(t *testing.T, e *endlessBody) error {
				h := &apiClient{server: server{host: "http://x", transport: e}}
				if why := h.reasonFor(t.Context(), "shop", "web"); why != "" {
					t.Errorf("the reason is %q, want none", why)
				}
				return io.ErrUnexpectedEOF
			},
		},
	} {
		if err := test.read(t, test.body); err == nil {
			t.Errorf("%s: no error", about)
		}
		if test.body.isOverLimit {
			t.Errorf("%s: more than %d bytes were read", about, test.body.limit)
		}
	}
}

func TestEndlessToken(t *testing.T) {
	account := t.TempDir()
	if err := os.WriteFile(filepath.Join(account, "token"), []byte(strings.Repeat("a", 2<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := server{accountDir: account}.readFile("token")
	if err != nil || len(b) != maxFile {
		t.Errorf("%d bytes read, error %v, want %d bytes", len(b), err, maxFile)
	}
}
