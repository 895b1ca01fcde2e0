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
	"sync"
	"sync/atomic"
	"time"

	"github.com/understudy-lb/understudy/internal/text/printable"
)

const (
	defaultAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
	maxFile           = 1 << 20
	maxStatus         = 64 << 10
	fileMaxAge        = time.Minute // older files of the token and the CA are read again
)

// server identifies an API server. The zero value is the API server of the cluster in which the
// program runs.
type server struct {
	host       string
	transport  http.RoundTripper
	accountDir string // directory of the service account's files, or "" for the default
}

func (s server) check() error {
	switch {
	case s.transport != nil && s.host == "":
		return errors.New("WithTransport: no host given, want one such as https://10.0.0.1:6443")
	case s.transport == nil && s.host != "":
		return errors.New("WithTransport: no transport given")
	case s.transport == nil && (os.Getenv("KUBERNETES_SERVICE_HOST") == "" || os.Getenv("KUBERNETES_SERVICE_PORT") == ""):
		return errors.New("not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; want WithTransport outside a cluster")
	}
	return nil
}

func (s server) baseURL() string {
	switch {
	case s.transport == nil:
		return "https://" + net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	case strings.Contains(s.host, "://"):
		return strings.TrimSuffix(s.host, "/")
	}
	return "https://" + s.host
}

// apiClient sends requests to an API server, with the credentials of the pod or through the
// program's transport. It is safe for concurrent use.
type apiClient struct {
	server
	users           int         // guarded by feeds.mu
	noInitialEvents atomic.Bool // whether the server rejects watches with initial events

	mu           sync.Mutex
	token        string
	ca           []byte
	podTransport *http.Transport // uses the pod's CA; nil if the program provides a transport
	filesReadAt  time.Time
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

// podNamespace returns the namespace of the pod. If there is none, it returns "default" for a
// program with its own transport, which may run outside a cluster.
func (h *apiClient) podNamespace() (string, error) {
	b, err := h.readFile("namespace")
	switch {
	case err == nil && labelPattern.MatchString(string(b)):
		return string(b), nil
	case h.transport != nil:
		return "default", nil
	case err == nil:
		err = errors.New("the file holds no valid name")
	}
	return "", fmt.Errorf("the target gives no namespace, and the pod has none: %w", err)
}

func (h *apiClient) expireFiles() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.filesReadAt = time.Time{}
}

// prepare returns the transport and the token. It reads the pod's files unless it has read them
// recently. The token is "" if the program provides the transport.
func (h *apiClient) prepare() (http.RoundTripper, string, error) {
	if h.transport != nil {
		return h.transport, "", nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.filesReadAt.IsZero() || time.Since(h.filesReadAt) >= fileMaxAge {
		if err := h.readFiles(); err != nil {
			return nil, "", err
		}
	}
	return h.podTransport, h.token, nil
}

// readFiles reads the files of the token and the CA. The caller must hold mu.
func (h *apiClient) readFiles() error {
	token, err := h.readFile("token")
	if err != nil {
		return err
	}
	ca, err := h.readFile("ca.crt")
	if err != nil {
		return err
	}
	if h.podTransport == nil || !bytes.Equal(ca, h.ca) {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(ca) {
			return fmt.Errorf("%s/ca.crt holds no certificate", cmp.Or(h.accountDir, defaultAccountDir))
		}
		h.close()
		h.podTransport = &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second, // closes the connections of a replaced transport
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		}
	}
	h.token, h.ca, h.filesReadAt = string(token), ca, time.Now()
	return nil
}

func (h *apiClient) close() {
	if h.podTransport != nil {
		h.podTransport.CloseIdleConnections()
	}
}

const slicesAPI = "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices"

// get sends a request. The caller must close the body. get does not follow redirects, because the
// token would be sent to another server.
func (h *apiClient) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	rt, token, err := h.prepare()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.baseURL()+path+"?"+query.Encode(), nil)
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
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	var s status
	_ = json.Unmarshal(body, &s) // the body may be a proxy's page instead of a Status
	s.Code = response.StatusCode
	if n, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && n > 0 {
		s.retryAfter = time.Duration(min(n, 120)) * time.Second
	}
	return nil, &s
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Details struct {
		Causes [8]struct {
			Reason string `json:"reason"`
		} `json:"causes"`
	} `json:"details"`
	retryAfter time.Duration
}

func (s *status) Error() string {
	text := fmt.Sprintf("the API server answers %d %s", s.Code, http.StatusText(s.Code))
	if s.Message != "" {
		text += ": " + printable.Line(s.Message, 300)
	}
	return text
}

// isVersionTooLarge reports whether the server rejected the request because it does not know the
// requested version yet.
func (s *status) isVersionTooLarge() bool {
	for _, c := range s.Details.Causes {
		if c.Reason == "ResourceVersionTooLarge" {
			return true
		}
	}
	return strings.Contains(s.Message, "Too large resource version")
}
