"use strict";
// The page works without this. It takes what the server sends once a second, and changes
// what is different, so that focus, selection and what is unfolded stay as they are.
const main = document.getElementById("main");
const live = document.getElementById("live");

const same = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName &&
	(a.nodeType !== 1 || a.dataset.key === b.dataset.key);

function patch(old, now) {
	if (old.nodeType !== 1) {
		if (old.data !== now.data) old.data = now.data;
		return;
	}
	for (const {name, value} of now.attributes) {
		if (name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
	}
	const before = [...old.childNodes], after = [...now.childNodes];
	after.forEach((node, i) => {
		if (i >= before.length) old.append(node);
		else if (same(before[i], node)) patch(before[i], node);
		else before[i].replaceWith(node);
	});
	before.slice(after.length).forEach((node) => node.remove());
}

const headlines = () => [...main.querySelectorAll("article")].slice(0, 5).map((a) => a.dataset.said).join(" ");

let said = headlines();
const events = new EventSource(main.dataset.events);
events.onmessage = (event) => {
	const next = document.createElement("main");
	next.innerHTML = event.data; // escaped by the server, and no script runs from it
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
