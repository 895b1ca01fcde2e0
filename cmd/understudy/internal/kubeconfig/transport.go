package kubeconfig

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// transport adds a user's credentials to requests. It is safe for concurrent use.
type transport struct {
	base        *http.Transport
	credentials func(context.Context) (credentials, error)
	// forget discards the credentials. It is called when the server has refused them.
	forget func()
}

type credentials struct {
	token       string
	certificate *tls.Certificate
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.credentials != nil {
		c, err := t.credentials(r.Context())
		if err != nil {
			return nil, err
		}
		if c.token != "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
	}
	response, err := t.base.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized && t.forget != nil {
		t.forget()
		t.base.CloseIdleConnections() // open connections would continue to use the old client certificate
	}
	return response, err
}

func (t *transport) authenticate(as namedUser, c cluster, ca []byte) error {
	u := as.User
	certificate, err := content(as.file, "client-certificate", u.CertificateData, u.CertificateFile)
	if err != nil {
		return err
	}
	key, err := content(as.file, "client-key", u.KeyData, u.KeyFile)
	if err != nil {
		return err
	}
	if certificate != nil || key != nil {
		pair, err := tls.X509KeyPair(certificate, key)
		if err != nil {
			return fmt.Errorf("%s: user %q: client-certificate and client-key are no pair in PEM", as.file, as.Name)
		}
		t.base.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	switch {
	case u.Token != "":
		t.credentials = func(context.Context) (credentials, error) { return credentials{token: u.Token}, nil }
	case u.TokenFile != "":
		f := &tokenFile{path: beside(as.file, u.TokenFile)}
		t.credentials, t.forget = f.credentials, f.forget
	case u.Exec != nil:
		p, err := u.Exec.checked(as.file, c, ca)
		if err != nil {
			return fmt.Errorf("%s: user %q: %w", as.file, as.Name, err)
		}
		t.credentials, t.forget = p.credentials, p.forget
		t.base.TLSClientConfig.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := p.credentials(r.Context())
			if err != nil || c.certificate == nil {
				return new(tls.Certificate), err
			}
			return c.certificate, nil
		}
	case u.Username != "" || u.Provider != nil:
		return fmt.Errorf("%s: user %q has a password or an auth-provider; want a certificate, a token, tokenFile or exec", as.file, as.Name)
	}
	return nil
}

// tokenFile holds a token from a file. It reads the file again when the token is a minute old.
type tokenFile struct {
	path string

	mu    sync.Mutex
	token string
	read  time.Time
}

func (f *tokenFile) credentials(context.Context) (credentials, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read.IsZero() || time.Since(f.read) >= time.Minute {
		text, err := read(f.path)
		if err != nil {
			return credentials{}, fmt.Errorf("kubeconfig: tokenFile: %w", err)
		}
		f.token, f.read = strings.TrimSpace(string(text)), time.Now()
	}
	return credentials{token: f.token}, nil
}

func (f *tokenFile) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = time.Time{}
}
