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

// endless is a body that does not end. Reading more than the limit in most fails, so that a missing
// limit is detected before the test runs out of memory.
type endless struct {
	begin, repeated string
	most            int
	read            int
	more            bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read > e.most {
		e.more = true
		return 0, errors.New("too much was read")
	}
	text := e.repeated
	if e.read < len(e.begin) {
		text = e.begin[e.read:]
	} else if at := (e.read - len(e.begin)) % len(e.repeated); at > 0 {
		text = e.repeated[at:]
	}
	n := copy(p, text)
	e.read += n
	return n, nil
}

func (e *endless) Close() error { return nil }

// RoundTrip responds with e as the body: with status 200 for a Service, and with an error status
// for slices.
func (e *endless) RoundTrip(r *http.Request) (*http.Response, error) {
	code := http.StatusInternalServerError
	if strings.HasPrefix(r.URL.Path, "/api/v1/") {
		code = http.StatusOK
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: e}, nil
}

// The client must not read a body without an end completely. Decoders read ahead, so they may
// exceed a limit by one buffer.
func TestBodiesWithoutAnEnd(t *testing.T) {
	const ahead = 1 << 20
	for about, test := range map[string]struct {
		body *endless
		read func(t *testing.T, e *endless) error
	}{
		"a list": {
			&endless{begin: `{"items":[{}`, repeated: `,{"x":"` + strings.Repeat("a", 4<<20) + `"}`, most: maxList + ahead},
			func(_ *testing.T, e *endless) error {
				_, err := readList(e, func(*slice, error) {})
				return err
			},
		},
		"an error": {
			&endless{repeated: "no ", most: maxStatus + ahead},
			func(t *testing.T, e *endless) error {
				_, err := (&host{server: server{host: "http://x", transport: e}}).get(t.Context(), "/", nil)
				return err
			},
		},
		"a Service": {
			&endless{begin: `{"kind":"`, repeated: "Service", most: maxService + ahead},
			func(t *testing.T, e *endless) error {
				w := &watch{host: &host{server: server{host: "http://x", transport: e}}, namespace: "shop"}
				if why := w.whyNot(t.Context(), "web"); why != "" {
					t.Errorf("the reason is %q, want none", why)
				}
				return io.ErrUnexpectedEOF
			},
		},
	} {
		if err := test.read(t, test.body); err == nil {
			t.Errorf("%s: no error", about)
		}
		if test.body.more {
			t.Errorf("%s: more than %d bytes were read", about, test.body.most)
		}
	}
}

func TestATokenWithoutAnEnd(t *testing.T) {
	account := t.TempDir()
	if err := os.WriteFile(filepath.Join(account, "token"), []byte(strings.Repeat("a", 2<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := server{account: account}.file("token")
	if err != nil || len(b) != maxFile {
		t.Errorf("%d bytes read, error %v, want %d bytes", len(b), err, maxFile)
	}
}
