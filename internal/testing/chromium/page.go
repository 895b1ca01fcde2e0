package chromium

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

type Page struct {
	browser  *Browser
	target   string
	session  string
	problems []string // guarded by browser.mu
}

type View struct {
	Width, Height int
	Dark          bool
	NoScript      bool
}

func (b *Browser) Open(ctx context.Context, url string, v View) (*Page, error) {
	var target struct {
		ID string `json:"targetId"`
	}
	if err := b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct {
		Session string `json:"sessionId"`
	}
	if err := b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": target.ID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{browser: b, target: target.ID, session: attached.Session}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Log", "Runtime"} {
		if err := p.call(ctx, domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	if err := p.SetView(ctx, v); err != nil {
		return nil, err
	}
	return p, p.Navigate(ctx, url)
}

func (p *Page) Close(ctx context.Context) error {
	return p.browser.call(ctx, "", "Target.closeTarget", map[string]any{"targetId": p.target}, nil)
}

func (p *Page) call(ctx context.Context, method string, params, result any) error {
	return p.browser.call(ctx, p.session, method, params, result)
}

func (p *Page) handle(method string, params json.RawMessage) {
	var event struct {
		Entry   *struct{ Level, Text, URL string } `json:"entry"`
		Details *struct {
			Text      string
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	if json.Unmarshal(params, &event) != nil {
		return
	}
	switch {
	case method == "Log.entryAdded" && event.Entry != nil && event.Entry.Level != "info" && event.Entry.Level != "verbose":
		p.problems = append(p.problems, strings.TrimSpace(event.Entry.Text+" "+event.Entry.URL))
	case method == "Runtime.exceptionThrown" && event.Details != nil:
		p.problems = append(p.problems, event.Details.Text+" "+event.Details.Exception.Description)
	}
}

// Problems returns everything that the page has logged as a warning or an error, e.g. uncaught
// exceptions, violations of the Content-Security-Policy, and resources that didn't load.
func (p *Page) Problems() []string {
	p.browser.mu.Lock()
	defer p.browser.mu.Unlock()
	return slices.Clone(p.problems)
}

func (p *Page) SetView(ctx context.Context, v View) error {
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	for _, c := range []struct {
		method string
		params map[string]any
	}{
		{"Emulation.setDeviceMetricsOverride", map[string]any{"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": false}},
		{"Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}},
		{"Emulation.setScriptExecutionDisabled", map[string]any{"value": v.NoScript}},
	} {
		if err := p.call(ctx, c.method, c.params, nil); err != nil {
			return err
		}
	}
	return nil
}

func (p *Page) Navigate(ctx context.Context, url string) error {
	var result struct{ ErrorText string }
	if err := p.call(ctx, "Page.navigate", map[string]any{"url": url}, &result); err != nil {
		return err
	}
	if result.ErrorText != "" {
		return fmt.Errorf("load %s: %s", url, result.ErrorText)
	}
	return p.WaitFor(ctx, `location.href !== "about:blank" && document.readyState === "complete"`)
}

func (p *Page) Eval(ctx context.Context, expression string, value any) error {
	var got struct {
		Result    struct{ Value json.RawMessage } `json:"result"`
		Exception *struct {
			Exception struct{ Description string }
		} `json:"exceptionDetails"`
	}
	err := p.call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &got)
	switch {
	case err != nil:
		return err
	case got.Exception != nil:
		return fmt.Errorf("%s: %s", expression, got.Exception.Exception.Description)
	case got.Result.Value == nil:
		return fmt.Errorf("%s: has no value", expression)
	}
	return json.Unmarshal(got.Result.Value, value)
}

func (p *Page) WaitFor(ctx context.Context, condition string) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		var met bool
		err := p.Eval(ctx, condition, &met)
		if err == nil && met {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last error: %v)", condition, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}

func (p *Page) Activate(ctx context.Context, selector string) error {
	quoted, err := json.Marshal(selector)
	if err != nil {
		return err
	}
	var focused bool
	expression := fmt.Sprintf(`(e => { e?.focus(); return e !== null && document.activeElement === e; })(document.querySelector(%s))`, quoted)
	if err := p.Eval(ctx, expression, &focused); err != nil {
		return err
	}
	if !focused {
		return fmt.Errorf("%s: no element can be focused", selector)
	}
	return p.Key(ctx, Enter)
}

type Key struct {
	Name, Text string
	Code       int
}

var (
	Enter = Key{"Enter", "\r", 13}
	Tab   = Key{"Tab", "", 9}
)

func (p *Page) Key(ctx context.Context, k Key) error {
	for _, kind := range []string{"keyDown", "keyUp"} {
		event := map[string]any{"type": kind, "key": k.Name, "code": k.Name, "windowsVirtualKeyCode": k.Code, "text": k.Text}
		if err := p.call(ctx, "Input.dispatchKeyEvent", event, nil); err != nil {
			return err
		}
	}
	return nil
}

func (p *Page) Screenshot(ctx context.Context) ([]byte, error) {
	var shot struct{ Data []byte }
	err := p.call(ctx, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	return shot.Data, err
}
