package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/printable"
)

const (
	account   = "/var/run/secrets/kubernetes.io/serviceaccount"
	maxFile   = 1 << 20
	maxStatus = 64 << 10
	fresh     = time.Minute // how long a token and a CA count without a look at their files
)

// server is the API server that a program names, or the one of the cluster it runs in.
type server struct {
	host      string
	transport http.RoundTripper
	account   string // where a pod has the files of its service account, "" for where they are
}

// check reports what is wrong on this machine.
func (s server) check() error {
	switch {
	case s.transport != nil && s.host == "":
		return errors.New("WithTransport: no host given, want one such as https://10.0.0.1:6443")
	case s.transport == nil && s.host != "":
		return errors.New("WithTransport: no transport given")
	case s.transport == nil && (os.Getenv("KUBERNETES_SERVICE_HOST") == "" || os.Getenv("KUBERNETES_SERVICE_PORT") == ""):
		return errors.New("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; want WithTransport elsewhere")
	}
	return nil
}

// base returns the URL of the server.
func (s server) base() string {
	switch {
	case s.transport == nil:
		return "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	case strings.Contains(s.host, "://"):
		return strings.TrimSuffix(s.host, "/")
	}
	return "https://" + s.host
}

// client makes requests with the credentials of the pod, or a transport that has its own.
type client struct {
	server
	namespace string
	token     string
	ca        []byte
	own       *http.Transport // in a cluster
	read      time.Time       // when the files were read
}

// file reads a file of the service account.
func (s server) file(name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(cmp.Or(s.account, account), name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return bytes.TrimSpace(b), err
}

// prepare reads what has to be read. A program with a transport may be in no cluster.
func (c *client) prepare() error {
	if c.namespace == "" {
		b, err := c.file("namespace")
		switch {
		case err == nil && label.MatchString(string(b)):
			c.namespace = string(b)
		case c.transport != nil:
			c.namespace = "default"
		default:
			return fmt.Errorf("the target gives no namespace, and the pod has none: %w", cmpErr(err))
		}
	}
	if c.transport != nil || !c.read.IsZero() && time.Since(c.read) < fresh {
		return nil
	}
	token, err := c.file("token")
	if err != nil {
		return err
	}
	ca, err := c.file("ca.crt")
	if err != nil {
		return err
	}
	if c.own == nil || !bytes.Equal(ca, c.ca) {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return fmt.Errorf("%s/ca.crt holds no certificate", account)
		}
		c.close()
		c.own = &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		}
	}
	c.token, c.ca, c.read = string(token), ca, time.Now()
	return nil
}

func cmpErr(err error) error {
	if err == nil {
		return errors.New("its name is not that of a namespace")
	}
	return err
}

func (c *client) close() {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
}

// get asks for the slices of Services. The caller closes the body. It follows no redirect, which
// would send the token elsewhere.
func (c *client) get(ctx context.Context, services string, more url.Values) (io.ReadCloser, error) {
	more.Set("labelSelector", serviceLabel+" in ("+services+")")
	at := c.base() + "/apis/discovery.k8s.io/v1/namespaces/" + c.namespace + "/endpointslices?" + more.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	rt := c.transport
	if rt == nil {
		rt = c.own
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := rt.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	var s status
	_ = json.Unmarshal(body, &s) // a proxy's page is no status
	s.Code = response.StatusCode
	if n, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && n > 0 {
		s.after = time.Duration(min(n, 120)) * time.Second
	}
	return nil, &s
}

// status is what the server says in place of slices.
type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Details struct {
		Causes []struct {
			Reason string `json:"reason"`
		} `json:"causes"`
	} `json:"details"`
	after time.Duration
}

func (s *status) Error() string {
	text := fmt.Sprintf("the API server answers %d %s", s.Code, http.StatusText(s.Code))
	if s.Message != "" {
		text += ": " + printable.Line(s.Message, 300)
	}
	return text
}

// tooLarge reports whether the server does not know so late a version.
func (s *status) tooLarge() bool {
	for _, c := range s.Details.Causes {
		if c.Reason == "ResourceVersionTooLarge" {
			return true
		}
	}
	return strings.Contains(s.Message, "Too large resource version")
}
