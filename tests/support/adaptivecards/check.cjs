// A JSON list of messages on stdin; fails on the first card that Microsoft's parser objects to.
const cards = require("adaptivecards");
const fs = require("fs");

for (const message of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const { contentType, content } = message.attachments[0];
  const context = new cards.SerializationContext(cards.Versions.v1_4);
  const card = new cards.AdaptiveCard();
  card.parse(content, context);
  const said = Array.from({ length: context.eventCount }, (_, at) => context.getEventAt(at).message);
  const wrong = [...said, ...card.validateProperties().validationEvents.map((each) => each.message)];
  if (contentType !== "application/vnd.microsoft.card.adaptive" || wrong.length || !card.getItemCount()) {
    throw new Error(`not a card: ${wrong.join("; ")}`);
  }
}
