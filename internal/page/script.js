"use strict";
// The page also works without this script. The script receives the page from the server up to
// once a second and changes only the parts that differ, so that the focus, the selection and
// unfolded elements are preserved.
const main = document.getElementById("main");
const live = document.getElementById("live");

const same = (a, b) => a.nodeName === b.nodeName &&
	(a.nodeType !== 1 || a.dataset.key === b.dataset.key && a.getAttribute("aria-label") === b.getAttribute("aria-label"));

// Whether the server last sent an element unfolded. The reader may have changed it since.
const unfolded = new WeakMap();

// fold folds or unfolds an element if the server changed whether the element is unfolded.
function fold(old, now) {
	if (unfolded.has(old) && unfolded.get(old) !== now.open) old.open = now.open;
	unfolded.set(old, now.open);
}

function patch(old, now) {
	if (old.nodeType !== 1) {
		if (old.data !== now.data) old.data = now.data;
		return;
	}
	for (const {name, value} of now.attributes) {
		if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
	}
	if (old.nodeName === "DETAILS") fold(old, now);
	let at = old.firstChild;
	const drop = (end) => {
		while (at !== end) {
			const gone = at;
			at = at.nextSibling;
			gone.remove();
		}
	};
	for (const node of [...now.childNodes]) {
		let match = at;
		while (match && !same(match, node)) match = node.nodeType === 1 ? match.nextSibling : null;
		if (match) {
			drop(match);
			at = match.nextSibling;
			patch(match, node);
		} else {
			old.insertBefore(node, at);
			node.querySelectorAll?.("details").forEach((d) => unfolded.set(d, d.open));
		}
	}
	drop(null);
}

const headlines = () => [...main.querySelectorAll("article")].slice(0, 5).map((a) => a.dataset.announcement).join(" ");

let said = headlines();
main.querySelectorAll("details").forEach((d) => unfolded.set(d, d.open));
const events = new EventSource(main.dataset.events);
events.onmessage = (event) => {
	const next = document.createElement("main");
	next.innerHTML = event.data; // escaped by the server; scripts in it do not run
	for (const {name, value} of main.attributes) next.setAttribute(name, value);
	patch(main, next);
	const now = headlines();
	live.textContent = now === said ? "live" : now; // said aloud when it changes
	if (now !== said) setTimeout(() => { said = now; }, 5000);
};
events.onerror = () => {
	live.textContent = events.readyState === EventSource.CLOSED
		? "not live: too many viewers, or the program has ended; reload to see more" : "reconnecting…";
};
