// Command screenshots takes the screenshots in docs: the page of the demo, the debug page while
// backends of the demo are killed, and the debug page of a channel with 10,000 endpoints. It needs
// Chromium.
//
//	go run ./test/bench/screenshots    # from the root of the repository
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/understudy-lb/understudy/internal/testing/chromium"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := takeAll(ctx, "docs"); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

var (
	desk     = chromium.View{Width: 1100, Height: 900}
	deskDark = chromium.View{Width: 1100, Height: 900, Dark: true}
	wide     = chromium.View{Width: 1500, Height: 900}
	phone    = chromium.View{Width: 420, Height: 1100}
)

func takeAll(ctx context.Context, dir string) (err error) {
	browser, err := chromium.Start()
	if err != nil {
		return err
	}
	defer func() {
		if closed := browser.Close(); err == nil {
			err = closed
		}
	}()
	page, stop, err := startDemo(ctx)
	if err != nil {
		return err
	}
	defer stop()
	c := &camera{browser: browser, dir: dir}
	if err := c.takeDemo(ctx, page); err != nil {
		return err
	}
	many, err := serveMany()
	if err != nil {
		return err
	}
	return c.take(ctx, "debug-many.png", many, desk, `/and [\d,]+ READY more/.test(document.body.innerText) && document.body.innerText.includes("TRANSIENT FAILURE") && `+fmt.Sprintf(enoughCalls, 0))
}

type camera struct {
	browser *chromium.Browser
	dir     string
}

const enoughCalls = `document.getElementById("live").innerText === "live" &&
	[...document.querySelectorAll('td[data-label="Calls"]')].some(e => Number(e.innerText) > %d)`

func (c *camera) take(ctx context.Context, file, url string, v chromium.View, condition string) error {
	page, err := c.browser.Open(ctx, url, v)
	if err != nil {
		return err
	}
	defer page.Close(ctx) //nolint:errcheck // the browser is closed soon
	if err := page.WaitFor(ctx, condition); err != nil {
		return err
	}
	var height int
	if err := page.Eval(ctx, `Math.ceil(document.body.getBoundingClientRect().bottom + 8)`, &height); err != nil {
		return err
	}
	v.Height = min(v.Height, height)
	if err := page.SetView(ctx, v); err != nil {
		return err
	}
	shot, err := page.Screenshot(ctx)
	if err != nil {
		return err
	}
	fmt.Println(file)
	return write(filepath.Join(c.dir, file), shot)
}

// write only keeps the 256 most frequent colors, which makes the file four times smaller.
func write(file string, shot []byte) error {
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	count := make(map[color.Color]int)
	area := picture.Bounds()
	for i := range area.Dx() * area.Dy() {
		count[picture.At(i%area.Dx(), i/area.Dx())]++
	}
	colours := slices.SortedFunc(maps.Keys(count), func(a, b color.Color) int { return cmp.Compare(count[b], count[a]) })
	listed := image.NewPaletted(area, colours[:min(len(colours), 256)])
	draw.Draw(listed, area, picture, area.Min, draw.Src)
	var small bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&small, listed); err != nil {
		return err
	}
	return os.WriteFile(file, small.Bytes(), 0o644) //nolint:gosec // a documentation file
}

func (c *camera) takeDemo(ctx context.Context, demo string) error {
	debug := demo + "debug/understudy/"
	first := `document.body.innerText.includes("Calls go to p0") && ` + fmt.Sprintf(enoughCalls, 300)
	second := `document.body.innerText.includes("Calls go to p1") && ` + fmt.Sprintf(enoughCalls, 300)
	if err := c.take(ctx, "debug-steady.png", debug, desk, first); err != nil {
		return err
	}
	if err := c.press(ctx, demo, "Errors: us-east/b"); err != nil {
		return err
	}
	if err := c.take(ctx, "debug-ejected.png", debug, desk, `document.querySelector(".ejected") !== null && `+fmt.Sprintf(enoughCalls, 300)); err != nil {
		return err
	}
	if err := c.press(ctx, demo, "Kill: p0"); err != nil {
		return err
	}
	for file, v := range map[string]chromium.View{"debug-failover.png": desk, "debug-dark.png": deskDark, "debug-narrow.png": phone} {
		if err := c.take(ctx, file, debug, v, second); err != nil {
			return err
		}
	}
	return c.take(ctx, "demo-hold.png", demo, wide, second)
}

func (c *camera) press(ctx context.Context, demo, label string) error {
	page, err := c.browser.Open(ctx, demo, wide)
	if err != nil {
		return err
	}
	defer page.Close(ctx) //nolint:errcheck // the browser is closed soon
	const headline = `document.querySelector(".said").innerText`
	var before string
	if err := page.Eval(ctx, headline, &before); err != nil {
		return err
	}
	if err := page.Activate(ctx, fmt.Sprintf(`button[aria-label=%q]`, label)); err != nil {
		return err
	}
	return page.WaitFor(ctx, fmt.Sprintf(`%s !== %q`, headline, before))
}

func startDemo(ctx context.Context) (page string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "screenshots-")
	if err != nil {
		return "", nil, err
	}
	binary := filepath.Join(dir, "understudy")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/understudy").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("build the demo: %w\n%s", err, out)
	}
	demo := exec.Command(binary, "demo", "--hold")
	stdout, err := demo.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := demo.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = demo.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, stdout)
		_ = demo.Wait()
		_ = os.RemoveAll(dir)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	page, found := strings.CutPrefix(strings.TrimSpace(line), "page: ")
	if !found {
		stop()
		return "", nil, fmt.Errorf("the first line of the demo is %q, %v", line, err)
	}
	return page, stop, nil
}
