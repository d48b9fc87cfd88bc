"use strict";
const id = name => document.getElementById(name);
const all = [...document.querySelectorAll(".difference")];
const texts = all.map(d => d.textContent.toLowerCase());
const boxes = [...document.querySelectorAll("#filter input[type=checkbox]")];

// show hides the differences that the filter leaves out, and states how many are left.
function show() {
	const words = id("search").value.toLowerCase().split(/\s+/).filter(w => w);
	const namespace = id("namespace").value;
	const off = new Set(boxes.filter(b => !b.checked).map(b => b.name + " " + b.value));
	let left = 0;
	all.forEach((d, i) => {
		d.hidden = off.has("effect " + d.dataset.effect) || off.has("type " + d.dataset.type) ||
			namespace !== "" && !d.dataset.namespaces.split(" ").includes(namespace) ||
			!words.every(w => texts[i].includes(w));
		left += d.hidden ? 0 : 1;
	});
	id("shown").textContent = left + " of " + all.length + " shown";
}

// reset shows everything again.
function reset() {
	id("search").value = "";
	id("namespace").value = "";
	boxes.forEach(b => { b.checked = true; });
	show();
}

if (id("filter")) {
	id("filter").hidden = false; // without a script it would do nothing
	id("filter").addEventListener("input", show);
	id("reset").addEventListener("click", reset);
	reset(); // a browser may have kept what was typed
	addEventListener("hashchange", () => { // a link to a difference that the filter leaves out
		const target = id(location.hash.slice(1));
		if (target && target.hidden) {
			reset();
			target.scrollIntoView();
		}
	});
}
