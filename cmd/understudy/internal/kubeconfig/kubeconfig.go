// Package kubeconfig reads kubectl's configuration. It makes Kubernetes targets work outside a
// cluster.
package kubeconfig

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"google.golang.org/grpc/grpclog"

	"github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/printable"
)

var logger = grpclog.Component("understudy")

// Options select the file and the context.
type Options struct {
	// Path is the path of the file. If it is empty, the files in KUBECONFIG are read, or else
	// ~/.kube/config.
	Path string
	// Context is the name of the context. If it is empty, the current context is used.
	Context string
}

// Flags adds command line flags for the options.
func (o *Options) Flags(flags interface {
	StringVar(value *string, name, standard, usage string)
}) {
	flags.StringVar(&o.Path, "kubeconfig", "", "kubeconfig `file` for kubernetes: targets (default: the pod's service account, else KUBECONFIG, else ~/.kube/config)")
	flags.StringVar(&o.Context, "context", "", "`name` of the context in the kubeconfig (default: the current one)")
}

// ofKubernetes matches Kubernetes targets, also inside other targets.
var ofKubernetes = regexp.MustCompile(`(^|[^a-z0-9+.-])(kubernetes|k8s):`)

// Sources returns the source options that the targets need. The result is nil if no target is a
// Kubernetes target. It is also nil if the program runs in a cluster and o is empty.
func (o Options) Sources(targets ...string) ([]any, error) {
	if !slices.ContainsFunc(targets, ofKubernetes.MatchString) {
		return nil, nil
	}
	if o == (Options{}) && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return nil, nil
	}
	host, t, err := o.transport()
	if err != nil {
		return nil, err
	}
	return []any{kubernetes.WithTransport(host, t)}, nil
}

func (o Options) paths() []string {
	if o.Path != "" {
		return []string{o.Path}
	}
	if list := slices.DeleteFunc(filepath.SplitList(os.Getenv("KUBECONFIG")), func(path string) bool { return path == "" }); len(list) > 0 {
		return list
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, ".kube", "config")}
}

func (o Options) transport() (string, *transport, error) {
	paths := o.paths()
	c, err := load(paths)
	if errors.Is(err, fs.ErrNotExist) && o.Path == "" {
		return "", nil, fmt.Errorf("not in a cluster, and there is no kubeconfig (%w); want --kubeconfig FILE", err)
	}
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if c == nil {
		return "", nil, errors.New("kubeconfig: not in a cluster, and no home directory; want --kubeconfig FILE")
	}
	context, err := find(c.Contexts, func(x namedContext) string { return x.Name }, "context", cmp.Or(o.Context, c.Current), paths)
	if err != nil {
		return "", nil, err
	}
	to, err := find(c.Clusters, func(x namedCluster) string { return x.Name }, "cluster", context.Context.Cluster, paths)
	if err != nil {
		return "", nil, err
	}
	var as namedUser
	if context.Context.User != "" {
		if as, err = find(c.Users, func(x namedUser) string { return x.Name }, "user", context.Context.User, paths); err != nil {
			return "", nil, err
		}
	}
	t, err := newTransport(to, as)
	if err != nil {
		return "", nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return to.Cluster.Server, t, nil
}

func find[T any](list []T, nameOf func(T) string, what, name string, paths []string) (none T, err error) {
	if name == "" {
		return none, fmt.Errorf("kubeconfig: %s: no %s is named; want one by current-context or --context", paths[0], what)
	}
	i := slices.IndexFunc(list, func(x T) bool { return nameOf(x) == name })
	if i < 0 {
		return none, fmt.Errorf("kubeconfig: %s: there is no %s %s", paths[0], what, printable.Quote(name))
	}
	return list[i], nil
}

func newTransport(to namedCluster, as namedUser) (*transport, error) {
	c := to.Cluster
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Host == "" || server.User != nil || server.Scheme != "https" && server.Scheme != "http":
		return nil, fmt.Errorf("%s: server is %s, want one such as https://10.0.0.1:6443", to.file, printable.Quote(c.Server))
	case server.Scheme == "http" && !loopback(server.Hostname()):
		return nil, fmt.Errorf("%s: server is %s, want https beyond loopback", to.file, printable.Quote(c.Server))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName, InsecureSkipVerify: c.Unverified}
	if c.Unverified {
		logger.Warningf("kubeconfig: %s: the certificate of %s is not verified (insecure-skip-tls-verify)", to.file, printable.Text(server.Host))
	}
	ca, err := content(to.file, "certificate-authority", c.CAData, c.CAFile)
	if err != nil {
		return nil, err
	}
	if ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s: certificate-authority holds no certificate, want PEM", to.file)
		}
	}
	t := &transport{base: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}}
	if c.Proxy != "" {
		proxy, err := url.Parse(c.Proxy)
		if err != nil || proxy.Host == "" {
			return nil, fmt.Errorf("%s: proxy-url does not parse", to.file)
		}
		t.base.Proxy = http.ProxyURL(proxy)
	}
	return t, t.authenticate(as, c, ca)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
