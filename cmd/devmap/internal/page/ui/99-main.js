// The order of the page, and its answer to light, dark and paper.

answerSection();
gpusSection();
memorySection();
document.getElementById('memory').append(...arenaFigures());
timeSection();
whySection();
runSection();
watchSection();

window.addEventListener('beforeprint', () => paper(true));
window.addEventListener('afterprint', () => paper(false));
window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
