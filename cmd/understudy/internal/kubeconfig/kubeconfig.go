// Package kubeconfig reads kubectl's configuration, so that Kubernetes targets work outside a
// cluster.
package kubeconfig

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/understudy-lb/understudy/discovery/kubernetes"
	"github.com/understudy-lb/understudy/internal/net/xnet"
	"github.com/understudy-lb/understudy/internal/text/printable"
)

type Options struct {
	// Path is the path of the file. It defaults to the files in KUBECONFIG, or else to
	// ~/.kube/config.
	Path string
	// Context is the name of the context. It defaults to the current one.
	Context string
}

func (o *Options) Flags(flags interface {
	StringVar(value *string, name, defaultValue, usage string)
}) {
	flags.StringVar(&o.Path, "kubeconfig", "", "kubeconfig `file` for kubernetes: targets (default: the pod's service account, else KUBECONFIG, else ~/.kube/config)")
	flags.StringVar(&o.Context, "context", "", "`name` of the context in the kubeconfig (default: the current one)")
}

var kubernetesPattern = regexp.MustCompile(`(^|[^a-z0-9+.-])(kubernetes|k8s):`) // anywhere in a target, because they can be nested

// Sources returns the source options that the targets need. It returns nil if there are no
// Kubernetes targets, and also if we're in a cluster and o is empty.
func (o Options) Sources(targets ...string) ([]any, error) {
	inPod := o == (Options{}) && os.Getenv("KUBERNETES_SERVICE_HOST") != ""
	if inPod || !slices.ContainsFunc(targets, kubernetesPattern.MatchString) {
		return nil, nil
	}
	host, transport, err := o.transport()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("not in a cluster, and there is no kubeconfig with a current context; want --kubeconfig FILE or --context NAME")
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %s", printable.Line(err.Error(), 500))
	}
	return []any{kubernetes.WithTransport(host, transport)}, nil
}

func (o Options) transport() (string, http.RoundTripper, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context}).ClientConfig()
	if err != nil {
		return "", nil, err
	}
	if server, err := url.Parse(config.Host); err == nil && server.Scheme == "http" && !xnet.IsLoopback(net.JoinHostPort(server.Hostname(), "80")) {
		return "", nil, fmt.Errorf("the server is %s, want https beyond loopback", printable.Quote(config.Host))
	}
	config.UserAgent = "understudy" // also makes the transport different from everyone else's, so we don't share watches
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true
		config.ExecProvider.StdinUnavailableMessage = "understudy never prompts"
	}
	transport, err := rest.TransportFor(config)
	return config.Host, transport, err
}
