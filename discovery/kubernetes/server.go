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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const (
	defaultAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	maxFile           = 1 << 20
	maxStatus         = 64 << 10
	maxService        = 1 << 20
	reasonTimeout     = 2 * time.Second // how long getting the Services may take (docs/waits.md)
)

// server is an API server. By default, it's that of the cluster we're running in.
type server struct {
	host       string
	transport  http.RoundTripper
	accountDir string // where the service account's files are, or "" for the default
}

func (s server) Check(bool) error {
	_, err := s.baseURL()
	return err
}

func (s server) baseURL() (string, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	switch {
	case s.transport != nil && s.host == "":
		return "", errors.New("WithTransport: no host given, want one such as https://10.0.0.1:6443")
	case s.transport == nil && s.host != "":
		return "", errors.New("WithTransport: no transport given")
	case s.transport == nil && (host == "" || port == ""):
		return "", errors.New("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; want WithTransport outside a cluster")
	case s.transport == nil:
		return "https://" + net.JoinHostPort(host, port), nil
	case strings.Contains(s.host, "://"):
		return strings.TrimSuffix(s.host, "/"), nil
	}
	return "https://" + s.host, nil
}

func (s server) readFile(name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(cmp.Or(s.accountDir, defaultAccountDir), name))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return bytes.TrimSpace(b), err
}

func (s server) podNamespace() (string, error) {
	// If the program has its own transport, it may not be running in a cluster, so there may be no
	// such file.
	b, err := s.readFile("namespace")
	switch {
	case err == nil && labelPattern.Match(b):
		return string(b), nil
	case s.transport != nil:
		return "default", nil
	}
	err = cmp.Or(err, errors.New("the file holds no valid name"))
	return "", fmt.Errorf("the target gives no namespace, and the pod has none: %w", err)
}

// apiClient is safe for concurrent use.
type apiClient struct {
	server
	users           int         // number of watches, guarded by the lock of clients
	noInitialEvents atomic.Bool // the server doesn't support watches with initial events

	mu           sync.Mutex
	ca           []byte
	podTransport *http.Transport // uses the pod's CA; nil if the program has its own transport
}

var clients = struct {
	sync.Mutex
	byServer map[server]*apiClient
}{byServer: make(map[server]*apiClient)}

// clientOf returns the client for a server, which is shared by all watches. The caller must release
// it.
func clientOf(s server) *apiClient {
	clients.Lock()
	defer clients.Unlock()
	h := clients.byServer[s]
	if h == nil {
		h = &apiClient{server: s}
		clients.byServer[s] = h
	}
	h.users++
	return h
}

func (h *apiClient) release() {
	clients.Lock()
	defer clients.Unlock()
	if h.users--; h.users == 0 {
		delete(clients.byServer, h.server)
	}
}

func (h *apiClient) credentials() (rt http.RoundTripper, token string, err error) {
	// The pod's files are replaced every now and then, so read them for each request.
	if h.transport != nil {
		return h.transport, "", nil
	}
	b, tokenErr := h.readFile("token")
	ca, caErr := h.readFile("ca.crt")
	if err := cmp.Or(tokenErr, caErr); err != nil {
		return nil, "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.podTransport == nil || !bytes.Equal(ca, h.ca) {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return nil, "", fmt.Errorf("%s/ca.crt holds no certificate", cmp.Or(h.accountDir, defaultAccountDir))
		}
		h.ca, h.podTransport = ca, &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second, // in case we've switched to a new transport
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		}
	}
	return h.podTransport, string(b), nil
}

func (h *apiClient) get(ctx context.Context, path string, query url.Values) (io.Reader, error) {
	// We close the body when ctx ends. With any transport, that ends a pending Read. Redirects
	// aren't followed, because some other server would get the token.
	rt, token, err := h.credentials()
	if err != nil {
		return nil, err
	}
	base, _ := h.baseURL() // Check has already returned the error
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := rt.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = response.Body.Close() })
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	var s status
	_ = json.Unmarshal(body, &s) // could be a proxy's page instead of a Status
	s.Code = response.StatusCode
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	s.retryAfter = time.Duration(min(max(seconds, 0), 120)) * time.Second
	return nil, &s
}

type status struct {
	Code       int
	Message    string
	Details    struct{ Causes [8]cause }
	retryAfter time.Duration
}

type cause struct{ Reason string }

func (s *status) Error() string {
	text := fmt.Sprintf("the API server answers %d %s", s.Code, http.StatusText(s.Code))
	if s.Message != "" {
		text += ": " + printable.Line(s.Message, 300)
	}
	return text
}

func (s *status) isVersionTooLarge() bool {
	return slices.Contains(s.Details.Causes[:], cause{"ResourceVersionTooLarge"}) || strings.Contains(s.Message, "Too large resource version")
}

// reason returns "" if we aren't allowed to get Services.
func (h *apiClient) reason(ctx context.Context, namespace, services string) string {
	ctx, cancel := context.WithTimeout(ctx, reasonTimeout)
	defer cancel()
	var reasons []string
	for name := range strings.SplitSeq(services, ",") {
		reasons = append(reasons, h.reasonFor(ctx, namespace, name))
	}
	if slices.Contains(reasons, "") {
		return ""
	}
	return strings.Join(reasons, "; ")
}

func (h *apiClient) reasonFor(ctx context.Context, namespace, name string) string {
	body, err := h.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/services/%s", namespace, name), url.Values{})
	if s, ok := errors.AsType[*status](err); ok && s.Code == http.StatusNotFound {
		return "there is no Service " + name
	}
	if err != nil {
		return ""
	}
	var service struct {
		Kind string
		Spec struct {
			Type, ExternalName string
			Selector           map[string]string
		}
	}
	switch err := json.NewDecoder(io.LimitReader(body, maxService)).Decode(&service); {
	case err != nil, service.Kind != "Service":
		return ""
	case service.Spec.Type == "ExternalName":
		return fmt.Sprintf("Service %s has the type ExternalName, and no endpoints: it is an alias of %s; want a target for that, such as failover:///%[2]s", name, printable.Line(service.Spec.ExternalName, 253))
	case len(service.Spec.Selector) == 0:
		return "Service " + name + " has no selector, and no EndpointSlices were created for it"
	}
	return "Service " + name + " has no EndpointSlices yet"
}
